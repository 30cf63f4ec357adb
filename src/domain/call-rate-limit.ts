import type { RateLimit } from './channel.ts'

/** Limit on the calls of a key, or of all keys of a user. 0 = off. */
export interface CallRateLimit extends RateLimit {
  /** Calls under way at once. */
  readonly parallel: number
}
