/** Maximum numbers of requests and of tokens (prompt and output) within a time window; 0 means no limit. */
export interface RateLimit {
  readonly requests: number
  readonly tokens: number
  readonly windowMs: number
}

/** A rate limit that limits nothing. */
export const NO_LIMIT: RateLimit = { requests: 0, tokens: 0, windowMs: 60_000 }

/** Rate limit on the calls of an API key, or of all keys of a user; 0 means no limit. */
export interface CallRateLimit extends RateLimit {
  /** Maximum number of calls that run at the same time. */
  readonly parallel: number
}
