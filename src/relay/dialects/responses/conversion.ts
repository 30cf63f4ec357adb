import { RESPONSES_PROMPT, maxTokensOf, responsesCodec } from '@sluice/wire/responses'
import type { ConversionDialect } from '../conversion-dialect.ts'

/** Responses, for conversion to and from other dialects. */
export const responsesConversion: ConversionDialect = {
  codec: responsesCodec,
  prompt: RESPONSES_PROMPT,
  path: () => '/responses',
  headers: [],
  beginsWithPrompt: false,
  endsWithAnswer: false,
  hasThinkingField: false,
  takesCacheMarks: () => false,
  search: ({ webSearch }) => webSearch && { type: 'web_search' },
  outputMaximum: maxTokensOf,
}
