/**
 * Usage of one response. Counts do not overlap: `input` excludes cached tokens. All are non-negative safe
 * integers.
 */
export interface Usage {
  /** Prompt tokens that were neither read from nor written to a cache. */
  readonly input: number
  readonly cacheRead: number
  /** Prompt tokens written to the five-minute cache. */
  readonly cacheWrite5m: number
  /** Prompt tokens written to the one-hour cache. */
  readonly cacheWrite1h: number
  /** Output tokens, reasoning included. */
  readonly output: number
  /** Reasoning part of `output`. */
  readonly reasoning: number
  /** Web searches by the upstream. */
  readonly webSearches: number
}

/** Zero usage. */
export const NO_USAGE: Usage = {
  input: 0,
  cacheRead: 0,
  cacheWrite5m: 0,
  cacheWrite1h: 0,
  output: 0,
  reasoning: 0,
  webSearches: 0,
}

/** All prompt tokens, cached or not, which determine the price tier. */
export function promptTokens(usage: Usage): number {
  return usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h
}
