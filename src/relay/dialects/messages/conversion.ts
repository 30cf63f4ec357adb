import { MESSAGES_PROMPT, maxTokensOf, messagesCodec } from '@sluice/wire/messages'
import type { ConversionDialect } from '../conversion-dialect.ts'
import { versionHeaders } from './version-headers.ts'

/** Messages, for conversion to and from other dialects. */
export const messagesConversion: ConversionDialect = {
  codec: messagesCodec,
  prompt: MESSAGES_PROMPT,
  path: () => '/messages',
  headers: versionHeaders({}),
  beginsWithPrompt: true,
  endsWithAnswer: true,
  hasThinkingField: true,
  takesCacheMarks: () => true,
  search: ({ webSearch }) => webSearch && { type: 'web_search_20250305', maxUses: webSearch.maxUses },
  outputMaximum: maxTokensOf,
}
