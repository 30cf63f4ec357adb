/**
 * Quota units of one account in this process; the only place that computes free quota. `remain` is what is
 * left after all settlements, including those not on disk yet. `held` is the sum of the open holds, which
 * reserve quota for running calls.
 */
export class Balance {
  readonly id: number
  remain: number
  held = 0
  /**
   * The part of `held` that counts as spent when a call is refused: what batches hold, which is not about to be free. A call
   * does not wait for it.
   */
  committed = 0
  openHolds = 0
  /**
   * Number of unfinished writes to this balance, plus the calls that wait for its quota. Unless it is 0, the
   * balance stays in memory.
   */
  pendingWrites = 0
  /** Whether the balance is charged but never refuses. May change while calls run. */
  isUnlimited: boolean
  /** Sum of all charges so far in quota units, from which the remaining amount of a budget is computed. */
  #used: number

  constructor(id: number, remain: number, used = 0, isUnlimited = false) {
    this.id = id
    this.remain = remain
    this.isUnlimited = isUnlimited
    this.#used = used
  }

  /** Quota units available for another hold. */
  get free(): number {
    return this.remain - this.held
  }

  /**
   * Quota units that an unlimited balance can still hold: the sum of its holds is counted exactly. Above 2^53, the driver of
   * SQLite would read no row and no sum of them.
   */
  get holdable(): number {
    return Number.MAX_SAFE_INTEGER - this.held
  }

  /**
   * Quota units available for another hold of a call that knows the budget's amount as `_amount`; nodes may
   * know different amounts for a while.
   */
  freeAtAmount(_amount: number): number {
    return this.free
  }

  /**
   * Whether calls wait for quota of this account at the bank, the database that nodes share. The free quota
   * of this process is then reserved for them.
   */
  get isAwaited(): boolean {
    return false
  }

  /** Quota units of the whole account, as far as this node knows; at 0 the account is exhausted. */
  get accountRemain(): number {
    return this.remain
  }

  /** The part of `accountRemain` that no open hold needs, as far as this node knows. */
  get accountFree(): number {
    return this.free
  }

  /** Quota units that were ever charged to the account, as far as this node knows. */
  get accountUsed(): number {
    return this.#used
  }

  /**
   * Whether the store contains the whole state of this balance, so that it may be removed from memory and
   * read again. An open hold keeps it even if the hold is of 0: its call is charged to this object.
   */
  get isIdle(): boolean {
    return this.openHolds === 0 && this.pendingWrites === 0
  }

  /** Adds quota units to the held amount, or releases them if the amount is negative. */
  hold(amount: number): void {
    this.held += amount
  }

  /** Subtracts a charge; a negative one reverts a charge that was never written. */
  charge(quota: number): void {
    this.remain -= quota
    this.#used += quota
  }
}

/** The balances of a token and of its user; each call is charged to both. */
export interface Account {
  readonly token: Balance
  readonly user: Balance
}

/** The balances of an account that may refuse a call: those of token and user, unless they are unlimited. */
export function limitedBalances<Of extends Balance>({
  token,
  user,
}: {
  readonly token: Of
  readonly user: Of
}): readonly Of[] {
  return [user, token].filter(({ isUnlimited }) => !isUnlimited)
}
