import { type Channel, isRouter } from '../../../domain/records/channel.ts'
import type { SharedField } from '../../../protocols/conversation.ts'
import type { Capabilities } from '../../../protocols/model-capabilities.ts'

/**
 * Whether a channel's upstream takes `cache_control` in chat requests: strict vendors refuse it, and above
 * all its `ttl`. `docs/configuration.md: Channels`, `allow`.
 */
export function takesCacheMarks({ allow, base_url }: Channel): boolean {
  return allow.has('cache_control') || isRouter(base_url)
}

/**
 * Whether a channel's upstream takes a shared field in chat requests: servers of models other than OpenAI's
 * refuse what they do not know.
 */
export function takesSharedField(
  field: SharedField,
  { allow, base_url }: Pick<Channel, 'allow' | 'base_url'>,
  { isOpenAi }: Pick<Capabilities, 'isOpenAi'>,
): boolean {
  return allow.has(field) || isOpenAi || isRouter(base_url)
}
