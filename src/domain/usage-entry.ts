import type { SettlementReason } from './settlement.ts'
import type { Usage } from './usage.ts'

/** One settled call, as the usage log tells of it. */
export interface UsageEntry {
  /** The call's id, which its answer had as `x-request-id`. */
  readonly id: string
  readonly endedMs: number
  readonly userId: number
  /** Of a deleted user and of a deleted token too. */
  readonly username: string
  readonly tokenId: number
  readonly tokenName: string
  /** As the caller asked for it. */
  readonly model: string
  readonly upstreamModel: string
  /** The channel's name. */
  readonly channel: string
  readonly group: string
  readonly usage: Usage
  /** What was charged, in quota units. */
  readonly quota: number
  readonly priceVersion: string
  readonly durationMs: number
  /** null where nothing was answered. */
  readonly firstByteMs: number | null
  readonly stream: boolean
  readonly reason: SettlementReason
}

/** Settled calls, added up. */
export interface UsageTotals {
  /** Calls that were answered, as in `request_count` of a user. */
  readonly requests: number
  /** Quota units. */
  readonly quota: number
  readonly usage: Usage
}

/** Which settled calls are meant: those of which all that is named here is true. */
export interface UsageFilter {
  readonly userId?: number | undefined
  /** Unix milliseconds: the call ended then or later. */
  readonly fromMs?: number | undefined
  /** The call ended before. */
  readonly beforeMs?: number | undefined
  readonly username?: string | undefined
  readonly tokenName?: string | undefined
  readonly model?: string | undefined
  readonly channel?: string | undefined
  readonly group?: string | undefined
  readonly id?: string | undefined
}
