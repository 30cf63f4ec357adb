import type { Channel } from '../../../domain/channel.ts'

/**
 * Whether a channel's upstream takes `cache_control` in chat requests: strict vendors refuse it, and above
 * all its `ttl`. `docs/configuration.md: Channels`, `allow`.
 */
export function takesCacheMarks({ allow, baseUrl }: Channel): boolean {
  return allow.has('cache_control') || /(?:^|\.)openrouter\.ai$/.test(new URL(baseUrl).hostname)
}
