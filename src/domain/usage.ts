/**
 * What one answer used. Every count stands alone: `input` holds no cached tokens, so nobody counts them
 * twice. All are non-negative safe integers.
 */
export interface Usage {
  /** Prompt tokens that were neither read from nor written to a cache. */
  readonly input: number
  readonly cacheRead: number
  /** Prompt tokens written to the cache that lives five minutes. */
  readonly cacheWrite5m: number
  /** Prompt tokens written to the cache that lives an hour. */
  readonly cacheWrite1h: number
  /** Everything generated, reasoning included. */
  readonly output: number
  /** The part of `output` that was reasoning. */
  readonly reasoning: number
  /** Web searches that the upstream made on the way. */
  readonly webSearches: number
}

/** Nothing used. */
export const NO_USAGE: Usage = {
  input: 0,
  cacheRead: 0,
  cacheWrite5m: 0,
  cacheWrite1h: 0,
  output: 0,
  reasoning: 0,
  webSearches: 0,
}

/** All prompt tokens, cached or not: what a price tier is chosen by. */
export function promptTokens(usage: Usage): number {
  return usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h
}
