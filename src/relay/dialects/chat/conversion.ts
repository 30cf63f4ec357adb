import type { Channel } from '../../../domain/records/channel.ts'
import { isRouter } from '@sluice/wire/upstream-settings'
import { canSearch, CHAT_PROMPT, chatCodec } from '@sluice/wire/chat'
import type { SharedField } from '@sluice/wire/conversation'
import type { Capabilities } from '@sluice/wire/model-capabilities'
import type { ConversionDialect } from '../conversion-dialect.ts'

/** Chat completions, for conversion to and from other dialects. */
export const chatConversion: ConversionDialect = {
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

/**
 * Reports whether a channel's upstream accepts `cache_control` in chat requests. Strict providers refuse it,
 * especially its `ttl`. `docs/configuration.md: Channels`, `allow`.
 */
function takesCacheMarks({ allow, base_url }: Channel): boolean {
  return allow.has('cache_control') || isRouter(base_url)
}

/**
 * Reports whether a channel's upstream accepts a shared field in chat requests. Servers of models other than
 * OpenAI's refuse unknown fields.
 */
export function takesSharedField(
  field: SharedField,
  { allow, base_url }: Pick<Channel, 'allow' | 'base_url'>,
  { isOpenAi }: Pick<Capabilities, 'isOpenAi'>,
): boolean {
  return allow.has(field) || isOpenAi || isRouter(base_url)
}
