import type { BudgetName } from '../domain/budget.ts'
import type { Token } from '../domain/records/token.ts'
import type { HoldOpening, ParkedHold, SettledCall } from '../domain/records/usage.ts'
import type { User } from '../domain/records/user.ts'

/** Reference to a hold; `userId` is for fair scheduling (`fairBatch`). */
interface HoldReference {
  readonly id: string
  readonly user_id: number
}

/** Owner of parked holds: no run of a gateway. */
export const PARKED_OWNER = 'parked'

/** Token and user after all writes that were queued before. */
export interface StoredAccount {
  readonly token: Token
  readonly user: User
  /** Sums of the open holds, in quota units. */
  readonly openHolds: { readonly token: number; readonly user: number }
}

/** Account of a budget in one period. */
export interface BudgetOpening {
  readonly name: BudgetName
  /** Quota units. */
  readonly amount: number
}

/** Prices of a model in a group. */
export interface StoredPriceSet {
  readonly version: string
  readonly model: string
  readonly group: string
  /** `priceSetText`. */
  readonly content: string
}

/** Result of `prune`. */
export interface PruneResult {
  /** Number of rows that were removed. */
  readonly rows: number
  /** Time that the writer took, without the commit. */
  readonly tookMs: number
}

/**
 * Writes made by every call, and recovery and pruning. They go to the local SQLite file, even if another
 * database stores everything else, as prepared statements; `docs/decisions/embedded-database.md`.
 */
export interface LedgerWrites {
  hold(opening: HoldOpening): void
  /** Adds `by` quota units to an open hold; has no effect if the hold is settled already. */
  growHold(growth: HoldReference & { readonly by: number }): void
  /** Records that output worth `amount` quota units was delivered; the value never falls. */
  markProgress(mark: HoldReference & { readonly amount: number }): void
  /**
   * Closes the hold, charges the call and stores its provenance; repetitions for the same id have no effect.
   */
  settle(call: SettledCall): void
  /** Writes a hold and removes it; succeeds if a hold could be written. */
  probe(): void
  /** Parks a hold: its call continues at the upstream, and recovery leaves it open. */
  parkHold(hold: HoldReference): void
  /** The parked holds. */
  parkedHolds(): ParkedHold[]
  /**
   * Settles the holds of other owners for what was delivered, with reason `crash`. Parked holds stay open
   * unless `parkedToo`.
   */
  recover(run: { readonly owner: string; readonly nowMs: number; readonly parkedToo?: boolean }): {
    readonly count: number
    /** Sum of the charges. */
    readonly quota: number
  }
  /** Settles the holds of one run that has ended, for what was delivered. Its parked holds stay open. */
  recoverRun(run: { readonly owner: string; readonly nowMs: number }): {
    readonly count: number
    /** Sum of the charges. */
    readonly quota: number
  }
  /**
   * Removes those of the `limit` oldest rows of the usage log whose calls ended before `beforeMs`. Keeps the
   * daily sums.
   */
  prune(old: { readonly beforeMs: number; readonly limit: number }): PruneResult
  loadAccount(account: { readonly tokenId: number }): StoredAccount | null
  /** Opens the account of a budget in one period with this amount, and returns how much of it is used. */
  openBudget(budget: BudgetOpening): { readonly used: number }
  /** Stores the price of a model in a group in one version of the prices, once. */
  storePriceSet(set: StoredPriceSet): void
}
