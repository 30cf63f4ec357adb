/**
 * Reasons why a call of a session found less than half of what its previous call had left in the provider's
 * prompt cache. The first one that applies is recorded. `docs/caches.md: Breaks`.
 */
export const CACHE_BREAKS = [
  /** Another channel served the call. */
  'channel_moved',
  /** The same channel served the call, but with another of its keys. */
  'key_moved',
  /** The call was sent to another model of the provider. */
  'model_changed',
  'tools_changed',
  /** The system prompt changed. */
  'system_changed',
  /** The conversation does not begin with the messages of the previous call. */
  'messages_changed',
  /**
   * The time since the previous call exceeds the lifetime of what that call had read from or written to the
   * cache.
   */
  'lifetime_passed',
  /** The gateway sees no reason: the provider has evicted the content. */
  'provider',
] as const

/** Why a prompt cache was not read. */
export type CacheBreak = (typeof CACHE_BREAKS)[number]

/** Number of cache breaks by reason; reasons without any are absent. */
export type CacheBreakCounts = Readonly<Partial<Record<CacheBreak, number>>>

/** Converts counts in the order of `CACHE_BREAKS` to counts by reason. */
export function cacheBreakCountsOf(counts: readonly number[]): CacheBreakCounts {
  return Object.fromEntries(
    CACHE_BREAKS.flatMap((reason, index) => (counts[index] ? [[reason, counts[index]]] : [])),
  )
}
