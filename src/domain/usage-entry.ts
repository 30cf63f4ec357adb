import type { CallKind } from './endpoints.ts'
import type { CallNote } from './call-note.ts'
import type { SettlementReason } from './settlement.ts'
import type { Usage } from './usage.ts'

/** A settled call in the usage log. */
export interface UsageEntry {
  /** The call's id, sent as `x-request-id` of its response. */
  readonly id: string
  readonly ended_ms: number
  readonly user_id: number
  /** Kept for deleted users and tokens too. */
  readonly username: string
  readonly token_id: number
  readonly token_name: string
  /** The model that answered: the one that the client requested, or a fallback of it. */
  readonly model: string
  /** The model that the client requested, by its name for it; empty in the estimate for a lost node. */
  readonly requested_model: string
  readonly upstream_model: string
  /** The channel's name. */
  readonly channel: string
  readonly group: string
  readonly usage: Usage
  /** Charge in quota units. */
  readonly quota: number
  readonly price_version: string
  readonly duration_ms: number
  /** null if there was no response. */
  readonly first_byte_ms: number | null
  readonly stream: boolean
  readonly reason: SettlementReason
  /** Whether the call had something that no price is known for. */
  readonly price_incomplete: boolean
  /** Empty where there is none. */
  readonly note: CallNote | ''
  /** Empty in the estimate for a lost node. */
  readonly kind: CallKind
}

/** Sums over settled calls. */
export interface UsageTotals {
  /** Number of calls with a response, as in a user's `request_count`. */
  readonly requests: number
  /** Quota units. */
  readonly quota: number
  readonly usage: Usage
}

/** Selects settled calls that match all given fields. */
export interface UsageFilter {
  readonly user_id?: number | undefined
  /** Lower bound of the call's end, in Unix milliseconds, inclusive. */
  readonly fromMs?: number | undefined
  /** Upper bound of the call's end, exclusive. */
  readonly beforeMs?: number | undefined
  readonly username?: string | undefined
  readonly token_name?: string | undefined
  readonly model?: string | undefined
  readonly channel?: string | undefined
  readonly group?: string | undefined
  readonly id?: string | undefined
  /** One of these is the reason of the call's charge. */
  readonly reasons?: readonly string[] | undefined
}
