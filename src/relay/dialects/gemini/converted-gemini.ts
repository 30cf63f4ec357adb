import { answerPath, geminiCodec, maxTokensOf } from '../../../protocols/gemini/index.ts'
import type { ConvertedDialect } from '../converted-dialect.ts'

/** The Gemini API, to and from other dialects. */
export const convertedGemini: ConvertedDialect = {
  codec: geminiCodec,
  path: answerPath,
  headers: [],
  beginsWithPrompt: false,
  endsWithAnswer: false,
  hasThinkingField: false,
  takesCacheMarks: () => false,
  outputMaximum: maxTokensOf,
}
