import type { SettlementReason } from '../domain/settlement.ts'
import type { Token } from '../domain/token.ts'
import type { Usage } from '../domain/usage.ts'
import type { User } from '../domain/user.ts'

/** What a call is and whom it is charged to: the part that a hold and its settlement share. */
interface Call {
  /** UUIDv7 of the request, minted by the gateway; the key of its hold and of its usage row. */
  readonly id: string
  readonly tokenId: number
  readonly userId: number
  /** As the caller asked for it. */
  readonly model: string
  readonly channel: string
  readonly group: string
  readonly stream: boolean
  readonly priceVersion: string
}

/** A hold as it is opened. Amounts are quota units. */
export interface HoldOpening extends Call {
  /** The running gateway that will settle it; recovery leaves its own alone. */
  readonly owner: string
  readonly amount: number
  /** The part of `amount` that stands for the prompt. */
  readonly promptAmount: number
  readonly startedMs: number
}

/** What a call cost, and all that is kept about it. */
export interface Settlement extends Call {
  readonly quota: number
  readonly reason: SettlementReason
  /** Whether the caller got any of the answer; only such calls are counted as requests. */
  readonly delivered: boolean
  readonly endedMs: number
  readonly usage: Usage
  readonly upstreamModel: string
  readonly durationMs: number
  /** From the start of the call to the first byte of the answer; null if there was none. */
  readonly firstByteMs: number | null
}

/** A token and its user as they stand after everything that was queued before. */
export interface Account {
  readonly token: Token
  readonly user: User
  /** Sums of the holds that are still open, in quota units. */
  readonly openHolds: { readonly token: number; readonly user: number }
}

/**
 * The writes that every call makes. They are kept in the local SQLite file whatever database holds the rest, and run as
 * prepared statements; `docs/decisions/2026-11-20-store-threads.md`.
 */
export interface LedgerWrites {
  hold(opening: HoldOpening): void
  /** Adds `by` quota units to an open hold; nothing happens if it is settled already. */
  growHold(growth: { readonly id: string; readonly by: number }): void
  /** Notes that output worth `amount` quota units has been delivered; never goes back. */
  markProgress(mark: { readonly id: string; readonly amount: number }): void
  /** Closes the hold and charges the call, once for each id however often it is called. */
  settle(settlement: Settlement): void
  /** Settles every hold of another owner at what is known to be delivered, with reason `crash`. */
  recover(run: { readonly owner: string; readonly nowMs: number }): {
    readonly count: number
    /** The sum of the charges. */
    readonly quota: number
  }
  loadAccount(account: { readonly tokenId: number }): Account | null
}
