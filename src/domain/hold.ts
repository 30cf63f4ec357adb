/** What is known of a call when it is admitted; stored with its hold, so that a crash can be charged. */
export interface HoldFacts {
  /** The call's id, minted by us (UUIDv7): of its hold, its settlement and its answer's `x-request-id`. */
  readonly id: string
  readonly model: string
  readonly channel: string
  readonly group: string
  readonly stream: boolean
  readonly priceVersion: string
  readonly startedMs: number
  /** Quota units that the prompt alone is expected to cost: the least that a crash is charged. */
  readonly promptAmount: number
}

/**
 * Quota taken off a token and its user while a call runs: the licence to call an upstream. Made by the ledger
 * alone.
 */
export interface Hold {
  readonly facts: HoldFacts
  /** Quota units held now. */
  readonly amount: number
  readonly isSettled: boolean
}
