/**
 * Why a call of a session read less than half of what its previous call had left in a prompt cache; the first that
 * applies. `docs/caches.md: Breaks`.
 */
export const CACHE_BREAKS = [
  /** Another channel served the call. */
  'channel_moved',
  /** Another key of the channel served it. */
  'key_moved',
  /** The provider was asked for another model. */
  'model_changed',
  'tools_changed',
  /** The system prompt changed. */
  'system_changed',
  /** The conversation does not begin with the messages of the previous call. */
  'messages_changed',
  /** What the previous call had read or written lives shorter than the time since. */
  'lifetime_passed',
  /** Nothing that the gateway sees: the provider forgot it. */
  'provider',
] as const

/** Why a prompt cache was not read. */
export type CacheBreak = (typeof CACHE_BREAKS)[number]

/** Numbers of breaks by their reason; reasons without any are absent. */
export type BreakCounts = Readonly<Partial<Record<CacheBreak, number>>>

/** Counts in the order of `CACHE_BREAKS`, by their reason. */
export function breakCounts(counts: readonly number[]): BreakCounts {
  return Object.fromEntries(
    CACHE_BREAKS.flatMap((reason, index) => (counts[index] ? [[reason, counts[index]]] : [])),
  )
}
