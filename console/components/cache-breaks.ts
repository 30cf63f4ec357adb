import { type CacheBreakCounts, CACHE_BREAKS, type CacheBreak } from '../../src/domain/cache-break.ts'

/** Who caused that a call did not use the prompt cache. */
export type CacheBreakCauser = 'gateway' | 'client' | 'provider'

/** For each reason why a call did not use the prompt cache, who caused it; `docs/caches.md: Breaks`. */
export const CACHE_BREAK_CAUSERS: Readonly<Record<CacheBreak, CacheBreakCauser>> = {
  channel_moved: 'gateway',
  key_moved: 'gateway',
  model_changed: 'client',
  tools_changed: 'client',
  system_changed: 'client',
  messages_changed: 'client',
  lifetime_passed: 'client',
  provider: 'provider',
}

/** A reason why the prompt cache was not used, and the number of calls with this reason. */
export interface CacheBreakCount {
  readonly reason: CacheBreak
  readonly causer: CacheBreakCauser
  readonly calls: number
}

/**
 * The reasons why the prompt cache was not used: first those caused by the gateway, then by clients, then by
 * the provider. Within each group, the most frequent reason is first.
 */
export function cacheBreakCounts(breaks: CacheBreakCounts): readonly CacheBreakCount[] {
  const counted = CACHE_BREAKS.map((reason) => ({
    reason,
    causer: CACHE_BREAK_CAUSERS[reason],
    calls: breaks[reason] ?? 0,
  })).filter(({ calls }) => calls > 0)
  return (['gateway', 'client', 'provider'] as const).flatMap((causer) =>
    counted.filter((one) => one.causer === causer).toSorted((one, other) => other.calls - one.calls),
  )
}

/**
 * The number of calls that did not use the prompt cache, for each causer that occurred: the gateway, then
 * clients, then the provider.
 */
export function callsByCacheBreakCauser(
  counted: readonly CacheBreakCount[],
): readonly { readonly causer: CacheBreakCauser; readonly calls: number }[] {
  const sums = new Map<CacheBreakCauser, number>()
  for (const { causer, calls } of counted) sums.set(causer, (sums.get(causer) ?? 0) + calls)
  return [...sums].map(([causer, calls]) => ({ causer, calls }))
}

/** Input tokens by how a prompt cache treated them. */
export interface CacheTokens {
  /** Tokens that were neither read from a cache nor written to one. */
  readonly input: number
  readonly cached: number
  readonly cache_write: number
}

export function totalInputTokens({ input, cached, cache_write }: CacheTokens): number {
  return input + cached + cache_write
}

/** The share (0 to 1) of the input that was read from caches; undefined if there is no input. */
export function shareReadFromCache(tokens: CacheTokens): number | undefined {
  const input = totalInputTokens(tokens)
  return input === 0 ? undefined : tokens.cached / input
}

/** The input tokens of a logged call, divided by how the prompt cache treated them. */
export function cacheTokensOf(call: {
  readonly prompt_tokens: number
  readonly cached_tokens: number
  readonly cache_write_5m_tokens: number
  readonly cache_write_30m_tokens: number
  readonly cache_write_1h_tokens: number
  readonly cache_write_12h_tokens: number
}): CacheTokens {
  const written =
    call.cache_write_5m_tokens +
    call.cache_write_30m_tokens +
    call.cache_write_1h_tokens +
    call.cache_write_12h_tokens
  return {
    input: call.prompt_tokens - call.cached_tokens - written,
    cached: call.cached_tokens,
    cache_write: written,
  }
}

/** Maximum number of characters that are shown of a provider's reason why its cache was not used. */
const MAX_VERDICT = 500

/** The reason, in the provider's words, why its cache was not used; shortened if it is too long. */
export function truncatedVerdict(verdict: string): string {
  return verdict.length > MAX_VERDICT ? `${verdict.slice(0, MAX_VERDICT)}…` : verdict
}
