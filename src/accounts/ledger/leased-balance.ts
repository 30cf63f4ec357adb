import type { AccountName, HoldReport, AccountState } from '../../store/bank.ts'
import { Balance } from './balance.ts'

/** A new lease is requested when the remaining one covers only this number of calls. */
const RENEW_AT_CALLS = 16
/** An account is scarce if the bank's remaining quota covers fewer than this number of calls. */
const SCARCE_CALLS = 8
/** Time in which calls that wait at the bank ask again, also on a busy machine. */
const AWAITED_MS = 1_000
/** Weight of one hold in the moving average `typicalHold`. */
const HOLD_WEIGHT = 1 / 8

/**
 * Leased balance of an account. `remain` is the lease minus the charges that the bank has not counted yet.
 * None of it can be spent while the bank may have fenced this node.
 */
export class LeasedBalance extends Balance {
  readonly account: AccountName
  /** Rises whenever the bank recalls all leases of the account; lower if the bank is an older copy. */
  epoch = 0
  /** Moving average of holds, in quota units. */
  typicalHold: number
  /** Time of the last hold or release, by `performance.now()`. */
  lastUsedMs = performance.now()
  /** Charges that the bank may not have counted yet. */
  #unreported = 0
  #leased = 0
  #bankRemain = 0
  #bankFree = 0
  #bankUsed = 0
  #lentUnder = 0
  /** By `performance.now()`. */
  #awaitedUntilMs = 0
  #reported = { held: 0, estimate: 0 }
  /** Set while the bank may be an older copy of the one asked before. */
  #mayBeRestored = false
  readonly #mayBeFenced: () => boolean

  constructor(account: AccountName, typical: number, mayBeFenced: () => boolean) {
    super(account.startsWith('b:') ? 0 : Number(account.slice(2)), 0)
    this.account = account
    this.typicalHold = typical
    this.#mayBeFenced = mayBeFenced
  }

  // After a quota was lowered, more may be lent than the account has. What calls give back is then not free.
  override get free(): number {
    const free = this.remain - this.held + Math.min(0, this.#bankFree)
    return this.#mayBeFenced() ? Math.min(0, free) : free
  }

  // A lease that was lent under a higher amount is not for calls that know the lower one: the bank has to know
  // it first.
  override freeUnder(amount: number): number {
    return amount < this.#lentUnder ? Math.min(0, this.free) : this.free
  }

  override get isAwaited(): boolean {
    return this.#awaitedUntilMs > 0 && performance.now() < this.#awaitedUntilMs
  }

  /** Keeps what becomes free from other calls for a while, because calls wait for it at the bank. */
  markAwaited(): void {
    this.#awaitedUntilMs = performance.now() + AWAITED_MS
  }

  /** Sets the amount of the budget that the last loan stated. */
  set lentUnder(amount: number) {
    if (amount > 0) this.#lentUnder = amount
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

  /** Sets what the bank has counted as charged. */
  set bankUsed(used: number) {
    this.#bankUsed = used
  }

  override get isIdle(): boolean {
    return super.isIdle && this.#unreported === 0
  }

  /** Whether the bank has so little left that quota is leased call by call. */
  get isScarce(): boolean {
    return this.#bankFree < SCARCE_CALLS * this.typicalHold
  }

  /** Whether the lease is nearly used up. */
  get isLow(): boolean {
    return this.#leased > 0 && this.free < RENEW_AT_CALLS * this.typicalHold
  }

  /** Part of the lease that must stay here: open holds and unreported charges. */
  get required(): number {
    return Math.max(0, this.held + this.#unreported)
  }

  /** Whether a part of the lease could be released. */
  get hasSpare(): boolean {
    return this.#leased > this.required
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
   * Applies a state received from the bank. If it is of an earlier epoch, only its counted charges apply,
   * unless the bank may be an older copy. Returns whether the lease was recalled, or is missing from that
   * copy.
   */
  applyState({ epoch, amount, remain, free, counted = 0 }: AccountState): boolean {
    this.#unreported -= counted
    this.remain += counted
    if (epoch < this.epoch && !this.#mayBeRestored) return false
    const isLost = epoch !== this.epoch || (this.#mayBeRestored && amount < this.required)
    if (epoch !== this.epoch) this.#enterEpoch(epoch)
    this.#mayBeRestored = false
    this.#bankRemain = remain
    this.#bankFree = free
    this.#setLease(amount)
    return isLost
  }

  /** Accepts the next state whatever its epoch, because that of an older copy of the bank may be lower. */
  expectRestored(): void {
    this.#mayBeRestored = true
  }

  /** Takes the spare part out of the lease before the bank is informed; returns what remains. */
  releaseSpare(): number {
    const { required: kept } = this
    this.#setLease(Math.min(this.#leased, kept))
    return kept
  }

  /** The held amount to report; undefined if the bank already knows it. */
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
