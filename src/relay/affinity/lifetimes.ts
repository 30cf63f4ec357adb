import { promptTokens, type Usage } from '@sluice/wire/usage'

/** Lifetimes of prompt caches in milliseconds, the shortest first. */
export const LIFETIMES_MS = [300_000, 1_800_000, 3_600_000, 43_200_000, 86_400_000] as const

/** Index of the longest lifetime. */
export const LAST_LIFETIME = LIFETIMES_MS.length - 1

/** Minimum number of tokens of a prompt that providers keep in a cache. */
const MIN_CACHED_TOKENS = 1_024

/** Whether a provider may have the prompt of a call in its cache. */
export function mayBeCached(usage: Usage): boolean {
  return usage.cacheRead > 0 || promptTokens(usage) >= MIN_CACHED_TOKENS
}

/** Tokens that an answer wrote, by lifetime. */
export function writtenTokens(usage: Usage): [number, number, number, number, number] {
  return [usage.cacheWrite5m, usage.cacheWrite30m, usage.cacheWrite1h, usage.cacheWrite12h, 0]
}

/** Index of the longest lifetime that an answer wrote; -1 if it wrote nothing. */
export function writtenLifetime(usage: Usage, cachesForADay: boolean): number {
  const longest = writtenTokens(usage).findLastIndex((tokens) => tokens > 0)
  // Providers that keep prompts for a day write them without reporting it.
  return cachesForADay && (longest >= 0 || mayBeCached(usage)) ? LAST_LIFETIME : longest
}
