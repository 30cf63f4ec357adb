import type { AccountName, HeldReport, AccountState } from '../store/bank.ts'
import { Balance } from './balance.ts'

/** Calls' worth of a lease at which the next one is requested. */
const RENEW_AT_CALLS = 16
/** Calls' worth of quota that the bank has left below which an account is scarce. */
const SCARCE_CALLS = 8
/** Weight of one hold in the moving average `typicalHold`. */
const HOLD_WEIGHT = 1 / 8

/**
 * Leased balance of an account. `remain` is the lease less the charges that the bank has not counted yet.
 * None of it can be spent while the bank may have fenced this node.
 */
export class LeasedBalance extends Balance {
  readonly account: AccountName
  /** Rises whenever the bank recalls all leases of the account; falls where the bank is an older copy. */
  epoch = 0
  /** Moving average of holds, in quota units. */
  typicalHold: number
  /** Time of the last hold or release, by `performance.now()`. */
  lastUsedMs = performance.now()
  /** Charges that the bank is not known to have counted. */
  #unreported = 0
  #leased = 0
  #bankRemain = 0
  #bankFree = 0
  #reported = { held: 0, estimate: 0 }
  /** Set while the bank may be an older copy of the one that was last asked. */
  #mayBeRestored = false
  readonly #mayBeFenced: () => boolean

  constructor(account: AccountName, typical: number, mayBeFenced: () => boolean) {
    super(account.startsWith('b:') ? 0 : Number(account.slice(2)), 0)
    this.account = account
    this.typicalHold = typical
    this.#mayBeFenced = mayBeFenced
  }

  override get free(): number {
    return this.#mayBeFenced() ? Math.min(0, this.remain - this.held) : this.remain - this.held
  }

  override get accountRemain(): number {
    return this.#bankRemain - this.#unreported
  }

  override get isIdle(): boolean {
    return super.isIdle && this.#unreported === 0
  }

  /** Whether the bank has so little left that quota is leased call by call. */
  get isScarce(): boolean {
    return this.#bankFree < SCARCE_CALLS * this.typicalHold
  }

  /** Whether a lease is about to be used up. */
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

  /** Notes that the bank has counted a part of the charges. */
  applyReported(quota: number): void {
    this.#unreported -= quota
  }

  /**
   * Applies a state that the bank has sent; of an earlier epoch, only the charges that it has counted, unless
   * the bank may be an older copy. Returns whether the lease was recalled, or is not in that copy.
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

  /** Makes the next state count whatever its epoch: that of an older copy of the bank may be lower. */
  expectRestored(): void {
    this.#mayBeRestored = true
  }

  /** Takes the spare part out of the lease, before the bank is told; returns the rest. */
  releaseSpare(): number {
    const { required: kept } = this
    this.#setLease(Math.min(this.#leased, kept))
    return kept
  }

  /** The held amount to report; undefined if the bank has it already. */
  takeReport(estimate: number): HeldReport | undefined {
    const { held, account } = this
    if (held === this.#reported.held && estimate === this.#reported.estimate) return undefined
    this.#reported = { held, estimate }
    return { account, held, estimate }
  }

  /** Makes the next `takeReport` repeat the held amount, which may not have arrived. */
  markUnsynced(): void {
    this.#reported = { held: -1, estimate: -1 }
  }

  #enterEpoch(epoch: number): void {
    this.epoch = epoch
    this.#setLease(0)
    // The bank has dropped its record of the holds together with the lease.
    this.#reported = { held: 0, estimate: 0 }
  }

  #setLease(amount: number): void {
    this.#leased = amount
    this.remain = amount - this.#unreported
  }
}
