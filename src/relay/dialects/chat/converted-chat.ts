import { canSearch, CHAT_PROMPT, chatCodec } from '../../../protocols/chat/index.ts'
import type { ConvertedDialect } from '../converted-dialect.ts'
import { takesCacheMarks, takesSharedField } from './taken-fields.ts'

/** Chat completions, to and from other dialects. */
export const convertedChat: ConvertedDialect = {
  codec: chatCodec,
  prompt: CHAT_PROMPT,
  path: () => '/chat/completions',
  headers: [],
  beginsWithPrompt: false,
  endsWithAnswer: false,
  hasThinkingField: false,
  takesCacheMarks,
  takesSharedField,
  search: ({ webSearch }, model) =>
    webSearch && !(webSearch.isOptional && !canSearch(model)) ? { type: 'web_search_options' } : undefined,
  outputMaximum: ({ maxTokens }) => maxTokens,
}
