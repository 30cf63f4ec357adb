import type { BudgetName } from '../domain/budget.ts'
import type { Token } from '../domain/records/token.ts'
import type { HoldOpening, ParkedHold, SettledCall } from '../domain/records/usage.ts'
import type { User } from '../domain/records/user.ts'

/**
 * Reference to a hold, the quota reserved for a running call. `userId` is used to share the writer fairly
 * (`fairBatch`).
 */
interface HoldReference {
  readonly id: string
  readonly user_id: number
}

/**
 * Owner of parked holds, whose calls continue at the provider without this process. The owner of other holds
 * is a run of the gateway.
 */
export const PARKED_OWNER = 'parked'

/** A token and its user, including the effect of all writes queued before. */
export interface StoredAccount {
  readonly token: Token
  readonly user: User
  /** Sums of the open holds of token and user, in quota units. */
  readonly openHolds: { readonly token: number; readonly user: number }
}

/** The account of a budget for one period, which is to be opened. */
export interface BudgetOpening {
  readonly name: BudgetName
  /** Amount of the budget in quota units. */
  readonly amount: number
}

/** Prices of a model in a group. */
export interface StoredPriceSet {
  readonly version: string
  readonly model: string
  readonly group: string
  /** The prices as JSON text, written by `priceSetText`. */
  readonly content: string
}

/** Result of `prune`, which removes old rows of the usage log. */
export interface PruneResult {
  /** Number of rows that were removed. */
  readonly rows: number
  /** Milliseconds that the deletion took, without the commit. */
  readonly tookMs: number
}

/**
 * The writes that every call makes, with recovery after a crash and pruning. They always go to the local
 * SQLite file, even if another database stores everything else, and are prepared statements;
 * `docs/decisions/embedded-database.md`.
 */
export interface LedgerWrites {
  hold(opening: HoldOpening): void
  /** Adds `by` quota units to an open hold; no effect if the call is settled already. */
  growHold(growth: HoldReference & { readonly by: number }): void
  /**
   * Records that output worth `amount` quota units was delivered, which is charged after a crash. A lower
   * amount than before is ignored.
   */
  markProgress(mark: HoldReference & { readonly amount: number }): void
  /**
   * Closes the hold, or shrinks the one that it was a part of, charges the call and stores its provenance (which channel
   * and key answered). Repeating this for the same id has no effect.
   */
  settle(call: SettledCall): void
  /** Removes a hold without a charge. */
  releaseHold(hold: HoldReference): void
  /** Tests whether holds can be written, by writing one and removing it. */
  probe(): void
  /**
   * Parks a hold: its call continues at the provider after this process has ended, so a recovery leaves the
   * hold open.
   */
  parkHold(hold: HoldReference): void
  /** Holds of calls that continue at the provider without this process. */
  parkedHolds(): ParkedHold[]
  /**
   * Settles the calls whose holds other runs of the gateway left open: charges what was delivered, with
   * reason `crash`. Parked holds, whose calls continue at the provider, stay open unless `parkedToo`.
   */
  recover(run: { readonly owner: string; readonly nowMs: number; readonly parkedToo?: boolean }): {
    readonly count: number
    /** Sum of the charges, in quota units. */
    readonly quota: number
  }
  /**
   * Looks at the `limit` oldest rows of the usage log, and removes those whose calls ended before `beforeMs`
   * (Unix milliseconds). The daily sums of usage stay.
   */
  prune(old: { readonly beforeMs: number; readonly limit: number }): PruneResult
  loadAccount(account: { readonly tokenId: number }): StoredAccount | null
  /**
   * Opens the account of a budget in one period with this amount. Returns how many quota units of it are
   * used.
   */
  openBudget(budget: BudgetOpening): { readonly used: number }
  /** Stores the price of a model in a group for one version of the prices, unless it is stored already. */
  storePriceSet(set: StoredPriceSet): void
}
