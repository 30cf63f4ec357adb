import type { CallKind } from './endpoints.ts'

/** Facts of a call at admission, stored with its hold so that a crash can be charged. */
export interface HoldFacts {
  /** The call's id (UUIDv7), also of its hold, its settlement and the response's `x-request-id`. */
  readonly id: string
  /** The model that is asked first: the one that the client requested, or a fallback of it. */
  readonly model: string
  /** The model that the client requested, by its name for it. */
  readonly requested_model: string
  readonly channel: string
  readonly group: string
  readonly stream: boolean
  readonly price_version: string
  readonly kind: CallKind
  readonly started_ms: number
  /** Expected cost of the prompt in quota units, the minimum that a crash is charged. */
  readonly prompt_amount: number
}

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
