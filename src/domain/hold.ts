import type { HoldFacts } from './records/usage.ts'

/**
 * Quota reserved on a token and its user while a call runs. No upstream may be called without one. Only the
 * ledger creates holds.
 */
export interface Hold {
  readonly facts: HoldFacts
  /** Quota units currently reserved. */
  readonly amount: number
  readonly isSettled: boolean
}
