import type { HoldFacts } from './records/usage.ts'

/**
 * Quota reserved on a token and its user while a call runs, without which no upstream may be called. Created
 * by the ledger alone.
 */
export interface Hold {
  readonly facts: HoldFacts
  /** Quota units currently held. */
  readonly amount: number
  readonly isSettled: boolean
}
