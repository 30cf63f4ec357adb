/** Limit on requests and on tokens (prompt and output) within a window; 0 is off. */
export interface RateLimit {
  readonly requests: number
  readonly tokens: number
  readonly windowMs: number
}

/** A limit that is off. */
export const NO_LIMIT: RateLimit = { requests: 0, tokens: 0, windowMs: 60_000 }

/** Limit on the calls of a key, or of all keys of a user; 0 is off. */
export interface CallRateLimit extends RateLimit {
  /** Maximum number of calls under way. */
  readonly parallel: number
}
