import type { HoldFacts } from '../domain/hold.ts'
import type { Settlement } from '../domain/settlement.ts'
import type { Token } from '../domain/token.ts'
import type { User } from '../domain/user.ts'

/** A hold as it is opened. */
export interface HoldOpening extends HoldFacts {
  /** The running gateway that will settle it; recovery leaves its own alone. */
  readonly owner: string
  readonly tokenId: number
  readonly userId: number
  /** Quota units. */
  readonly amount: number
}

/** A hold, and whose turn a write about it takes. */
interface HoldReference {
  readonly id: string
  readonly userId: number
}

/** A settlement with all that its usage row tells of the call. */
export interface SettledCall extends Settlement {
  /** The call's id: of its hold, and of its usage row. */
  readonly id: string
  readonly tokenId: number
  readonly userId: number
  /** As the caller asked for it. */
  readonly model: string
  readonly group: string
  readonly stream: boolean
  readonly priceVersion: string
  readonly durationMs: number
}

/** A token and its user as they stand after everything that was queued before. */
export interface StoredAccount {
  readonly token: Token
  readonly user: User
  /** Sums of the holds that are still open, in quota units. */
  readonly openHolds: { readonly token: number; readonly user: number }
}

/** What a run of `prune` came to. */
export interface PruneResult {
  /** Rows removed. */
  readonly rows: number
  /** How long the writer was at it, the commit not included. */
  readonly tookMs: number
}

/**
 * The writes that every call makes, and what keeps their rows in bounds. They are kept in the local SQLite
 * file whatever database holds the rest, and run as prepared statements;
 * `docs/decisions/2026-11-20-store-threads.md`.
 */
export interface LedgerWrites {
  hold(opening: HoldOpening): void
  /** Adds `by` quota units to an open hold; nothing happens if it is settled already. */
  growHold(growth: HoldReference & { readonly by: number }): void
  /** Notes that output worth `amount` quota units has been delivered; never goes back. */
  markProgress(mark: HoldReference & { readonly amount: number }): void
  /** Closes the hold and charges the call, once for each id however often it is called. */
  settle(call: SettledCall): void
  /** Settles every hold of another owner at what is known to be delivered, with reason `crash`. */
  recover(run: { readonly owner: string; readonly nowMs: number }): {
    readonly count: number
    /** The sum of the charges. */
    readonly quota: number
  }
  /**
   * Looks at the `limit` oldest rows of the usage log and removes those of calls that ended before
   * `beforeMs`. The daily sums stay.
   */
  prune(old: { readonly beforeMs: number; readonly limit: number }): PruneResult
  loadAccount(account: { readonly tokenId: number }): StoredAccount | null
}
