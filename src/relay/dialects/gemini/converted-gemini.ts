import { GEMINI_PROMPT, answerPath, geminiCodec, maxTokensOf } from '../../../protocols/gemini/index.ts'
import type { ConvertedDialect } from '../converted-dialect.ts'

/** The Gemini API, to and from other dialects. */
export const convertedGemini: ConvertedDialect = {
  codec: geminiCodec,
  prompt: GEMINI_PROMPT,
  path: answerPath,
  headers: [],
  beginsWithPrompt: false,
  endsWithAnswer: false,
  hasThinkingField: false,
  takesCacheMarks: () => false,
  outputMaximum: maxTokensOf,
}
