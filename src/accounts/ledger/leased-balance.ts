import type { AccountName, HoldReport, AccountState } from '../../store/bank.ts'
import { Balance } from './balance.ts'

/**
 * More quota is borrowed from the bank when the free quota of the lease covers fewer than this number of
 * calls.
 */
const RENEW_AT_CALLS = 16
/** An account is scarce if the bank's remaining quota covers fewer than this number of calls. */
const SCARCE_CALLS = 8
/**
 * Time for which free quota stays reserved for calls that wait at the bank. They ask again within it, even on
 * a busy machine.
 */
const AWAITED_MS = 1_000
/** Weight of one hold in the moving average `typicalHold`. */
const HOLD_WEIGHT = 1 / 8

/**
 * Quota of an account that the bank has lent to this process. `remain` is the lent quota minus the charges
 * that the bank has not counted yet. Nothing can be spent while the bank may have taken it back.
 */
export class LeasedBalance extends Balance {
  readonly account: AccountName
  /**
   * Number that rises whenever the bank recalls all leases of the account. It falls only if the bank was
   * restored from an older copy.
   */
  epoch = 0
  /** Moving average of the amounts that calls reserve on the account, in quota units. */
  typicalHold: number
  /** Time of the last hold or release, by `performance.now()`. */
  lastUsedMs = performance.now()
  /** Charges that the bank may not have counted yet, in quota units. */
  #unreported = 0
  #leased = 0
  #bankRemain = 0
  #bankFree = 0
  #bankUsed = 0
  /** Whether the lease of the latest state did not cover the open holds. */
  #lacked = false
  /** Time until which free quota is reserved for calls that wait at the bank, by `performance.now()`. */
  #awaitedUntilMs = 0
  #reported = { held: 0, estimate: 0 }
  /** Set while the bank may have been restored from an older copy. */
  #mayBeRestored = false
  readonly #mayBeFenced: () => boolean

  constructor(account: AccountName, typical: number, mayBeFenced: () => boolean) {
    super(account.startsWith('b:') ? 0 : Number(account.slice(2)), 0)
    this.account = account
    this.typicalHold = typical
    this.#mayBeFenced = mayBeFenced
  }

  // After an operator lowered a quota, leases may exceed it. Quota that calls release is then not free.
  override get free(): number {
    const free = this.remain - this.held + Math.min(0, this.#bankFree)
    return this.#mayBeFenced() ? Math.min(0, free) : free
  }

  // After a budget was lowered, a lease of the higher amount cannot pay for calls that know the lower one: the
  // bank has to learn it first. The bank's amount is what is used and what remains. 0 is an unknown amount.
  override freeAtAmount(amount: number): number {
    const isLower = amount > 0 && amount < this.#bankUsed + this.#bankRemain
    return isLower ? Math.min(0, this.free) : this.free
  }

  override get isAwaited(): boolean {
    return this.#awaitedUntilMs > 0 && performance.now() < this.#awaitedUntilMs
  }

  /** Reserves free quota for `AWAITED_MS` for the calls that wait for this account at the bank. */
  markAwaited(): void {
    this.#awaitedUntilMs = performance.now() + AWAITED_MS
  }

  override get accountRemain(): number {
    return this.#bankRemain - this.#unreported
  }

  override get accountFree(): number {
    return this.remain - this.held + this.#bankFree
  }

  override get accountUsed(): number {
    return this.#bankUsed + this.#unreported
  }

  override get isIdle(): boolean {
    return super.isIdle && this.#unreported === 0
  }

  /** Quota units that the bank could lend, as far as this node knows. */
  get lendable(): number {
    return Math.max(0, this.#bankFree)
  }

  /** Whether the bank has so little quota left that each call borrows only what it needs. */
  get isScarce(): boolean {
    return this.#bankFree < SCARCE_CALLS * this.typicalHold
  }

  /** Whether the quota lent by the bank is nearly used up, so that more should be borrowed. */
  get isLow(): boolean {
    return this.#leased > 0 && this.free < RENEW_AT_CALLS * this.typicalHold
  }

  /**
   * Part of the lease, in quota units, that must not be returned to the bank: open holds and unreported
   * charges.
   */
  get required(): number {
    return Math.max(0, this.held + this.#unreported)
  }

  /**
   * Whether the lease exceeds what open holds and unreported charges need, so that a part could be returned
   * to the bank.
   */
  get hasSpare(): boolean {
    return this.#leased > this.required
  }

  /** Whether the lease does not cover the open holds and the charges that the bank has not counted yet. */
  get #lacksLease(): boolean {
    return this.held > 0 && this.required > this.#leased
  }

  override hold(amount: number): void {
    super.hold(amount)
    this.lastUsedMs = performance.now()
    if (amount > 0) this.typicalHold += (amount - this.typicalHold) * HOLD_WEIGHT
  }

  override charge(quota: number): void {
    super.charge(quota)
    this.#unreported += quota
  }

  /** Records that the bank has counted a part of the charges. */
  applyReported(quota: number): void {
    this.#unreported -= quota
  }

  /**
   * Applies a state received from the bank. A state of an earlier epoch is ignored, unless
   * the bank may have been restored from an older copy. Returns whether the lease was recalled, or is missing
   * from the restored copy, or does not cover the open holds although more could be borrowed.
   */
  applyState({ epoch, amount, remain, used, free }: AccountState): boolean {
    if (epoch < this.epoch && !this.#mayBeRestored) return false
    const isRecalled = epoch !== this.epoch || (this.#mayBeRestored && amount < this.required)
    if (epoch !== this.epoch) this.#enterEpoch(epoch)
    this.#mayBeRestored = false
    this.#bankRemain = remain
    this.#bankUsed = used
    this.#bankFree = free
    this.#setLease(amount)
    // Others may return what is not free yet, but are asked only once.
    const mayBorrow = !this.#lacked || free > 0
    this.#lacked = this.#lacksLease
    return isRecalled || (this.#lacked && mayBorrow && !this.isUnlimited)
  }

  /**
   * Records that the bank lends nothing on this account any more. Returns whether the open holds lack a lease.
   */
  endLease(): boolean {
    if (this.#leased === 0) return false
    this.#setLease(0)
    // The bank may have dropped its record of the holds together with the lease.
    this.markUnsynced()
    this.#lacked = this.#lacksLease
    return this.#lacked && !this.isUnlimited
  }

  /**
   * Makes `applyState` accept the next state whatever its epoch: a bank restored from an older copy may state
   * a lower one.
   */
  expectRestored(): void {
    this.#mayBeRestored = true
  }

  /**
   * Reduces the lease to what open holds and unreported charges need, before the bank is informed. Returns
   * what they need and what is returned, in quota units.
   */
  releaseSpare(): { readonly keep: number; readonly spare: number } {
    const before = this.#leased
    const { required: keep } = this
    this.#setLease(Math.min(before, keep))
    return { keep, spare: before - this.#leased }
  }

  /** Takes back quota that `releaseSpare` returned and the bank could not take. It counts as just used. */
  keepSpare(spare: number): void {
    this.#setLease(this.#leased + spare)
    this.lastUsedMs = performance.now()
  }

  /** The held amount to report to the bank; undefined if the bank already knows it. */
  takeReport(estimate: number): HoldReport | undefined {
    const { held, account } = this
    if (held === this.#reported.held && estimate === this.#reported.estimate) return undefined
    this.#reported = { held, estimate }
    return { account, held, estimate }
  }

  /** Makes the next `takeReport` repeat the held amount, because the last report may not have arrived. */
  markUnsynced(): void {
    this.#reported = { held: -1, estimate: -1 }
  }

  #enterEpoch(epoch: number): void {
    this.epoch = epoch
    this.#setLease(0)
    // The bank may have dropped its record of the holds together with the lease.
    this.markUnsynced()
  }

  #setLease(amount: number): void {
    this.#leased = amount
    this.remain = amount - this.#unreported
  }
}
