import { GEMINI_PROMPT, answerPath, geminiCodec, maxTokensOf } from '@sluice/wire/gemini'
import type { ConversionDialect } from '../conversion-dialect.ts'

/** The Gemini API, for conversion to and from other dialects. */
export const geminiConversion: ConversionDialect = {
  codec: geminiCodec,
  prompt: GEMINI_PROMPT,
  path: answerPath,
  headers: [],
  beginsWithPrompt: false,
  endsWithAnswer: false,
  hasThinkingField: false,
  takesCacheMarks: () => false,
  // Most models refuse functions together with web search; the functions are kept.
  search: ({ webSearch, tools }) => (webSearch && tools.length === 0 ? { type: 'googleSearch' } : undefined),
  outputMaximum: maxTokensOf,
}
