import { GatewayError } from '../errors.ts'

/**
 * One balance as this process knows it: the only place where free quota is decided. `remain` already counts
 * every settlement that was queued, durable or not; `held` is the sum of the open holds.
 */
export class Balance {
  readonly id: number
  remain: number
  held = 0
  /** Writes of this balance that are not yet durable. */
  pendingWrites = 0

  constructor(id: number, remain: number) {
    this.id = id
    this.remain = remain
  }

  /** What a further hold may take. */
  get free(): number {
    return this.remain - this.held
  }

  /** What the account has, as far as this node knows: at nothing it is exhausted. */
  get accountRemain(): number {
    return this.remain
  }

  /** Nothing that the store does not know: it may be forgotten and read again. */
  get isIdle(): boolean {
    return this.held === 0 && this.pendingWrites === 0
  }

  /** Holds so much more; a negative amount lets go. */
  hold(amount: number): void {
    this.held += amount
  }

  /** Takes a charge off; a negative one takes a charge back that was never written. */
  charge(quota: number): void {
    this.remain -= quota
  }
}

/** The two balances that every call is charged to. */
export interface Account {
  readonly token: Balance
  readonly user: Balance
  /** An unlimited token's own balance moves but never blocks. Its owner may change that while calls run. */
  unlimited: boolean
}

/** The token's free quota, or the user's where that is less. */
export function affordable(account: Account): number {
  return account.unlimited ? account.user.free : Math.min(account.token.free, account.user.free)
}

/** Refuses a call that costs more quota units than are free. */
export class InsufficientQuota extends GatewayError {
  readonly free: number
  readonly needed: number

  /** `shown`: the same amounts as the operator shows quota. */
  constructor(free: number, needed: number, shown = '') {
    super(
      'insufficient_quota',
      `quota is not enough for this request: ${free} remain, ${needed} are needed${shown}`,
    )
    this.free = free
    this.needed = needed
  }
}
