import type { Budget } from './budget.ts'
import type { RateLimit } from './rate-limit.ts'

/** Limit on the calls of a key, or of all keys of a user; 0 is off. */
export interface CallRateLimit extends RateLimit {
  /** Maximum number of calls under way. */
  readonly parallel: number
}

/** Terms of the calls of a token, or of all tokens of a user. */
export interface CallTerms {
  readonly budget: Budget | undefined
  readonly rateLimit: CallRateLimit
}

/** Changes of terms; absent ones stay unchanged. A null budget removes the budget. */
export interface TermChanges {
  readonly budget?: Budget | null | undefined
  readonly rateLimit?: Partial<CallRateLimit> | undefined
}
