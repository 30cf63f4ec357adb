import type { AccountName, HeldReport, AccountState } from '../store/bank.ts'
import { Balance } from './balance.ts'

/** How much one hold counts in what a hold is expected to be. */
const WEIGHT = 1 / 8

/**
 * What this node has borrowed of an account. `remain` is what was lent, less what calls were charged since
 * the bank was told. Nothing of it can be spent once the node may have been given up by the bank.
 */
export class LeasedBalance extends Balance {
  readonly account: AccountName
  /** Goes up whenever the bank calls its leases in. */
  epoch = 0
  /** Quota units that a hold comes to, lately. */
  typicalHold: number
  /** When a hold was last taken or let go; on the clock of `performance.now()`. */
  lastUsedMs = performance.now()
  /** Charged, and not known to the bank as far as we know. */
  #unreported = 0
  #lent = 0
  #bankRemain = 0
  #told = { held: 0, estimate: 0 }
  readonly #isCutOff: () => boolean

  constructor(account: AccountName, typical: number, isCutOff: () => boolean) {
    super(Number(account.slice(2)), 0)
    this.account = account
    this.typicalHold = typical
    this.#isCutOff = isCutOff
  }

  override get free(): number {
    return this.#isCutOff() ? Math.min(0, this.remain - this.held) : this.remain - this.held
  }

  override get accountRemain(): number {
    return this.#bankRemain - this.#unreported
  }

  override get isIdle(): boolean {
    return super.isIdle && this.#unreported === 0
  }

  /** What of the lease must stay here: open holds, and what is still to be reported. */
  get required(): number {
    return Math.max(0, this.held + this.#unreported)
  }

  /** There is something that could be given back. */
  get hasSpare(): boolean {
    return this.#lent > this.required
  }

  override hold(amount: number): void {
    super.hold(amount)
    this.lastUsedMs = performance.now()
    if (amount > 0) this.typicalHold += (amount - this.typicalHold) * WEIGHT
  }

  override charge(quota: number): void {
    super.charge(quota)
    this.#unreported += quota
  }

  /** The bank has counted so much of what was charged here. */
  applyReported(quota: number): void {
    this.#unreported -= quota
  }

  /** Takes over where the bank says that we stand; what it said of an earlier epoch is void. */
  applyState({ epoch, amount, remain }: AccountState): void {
    if (epoch < this.epoch) return
    if (epoch > this.epoch) this.#calledIn(epoch)
    this.#bankRemain = remain
    this.#lend(amount)
  }

  /** Its leases were called in: nothing of an earlier epoch is worth anything. False if that was known. */
  advanceEpoch(epoch: number): boolean {
    if (epoch <= this.epoch) return false
    this.#calledIn(epoch)
    return true
  }

  /** Lets go of what is not kept, before the bank is told; resolves what is kept. */
  releaseSpare(): number {
    const { required: kept } = this
    this.#lend(Math.min(this.#lent, kept))
    return kept
  }

  /** What the bank is to be told is open here; undefined if it knows. */
  takeReport(estimate: number): HeldReport | undefined {
    const { held, account } = this
    if (held === this.#told.held && estimate === this.#told.estimate) return undefined
    this.#told = { held, estimate }
    return { account, held, estimate }
  }

  /** What the bank knows of it is in doubt: it is told anew. */
  markUnsynced(): void {
    this.#told = { held: -1, estimate: -1 }
  }

  #calledIn(epoch: number): void {
    this.epoch = epoch
    this.#lend(0)
    // What was held went with the lease.
    this.#told = { held: 0, estimate: 0 }
  }

  #lend(amount: number): void {
    this.#lent = amount
    this.remain = amount - this.#unreported
  }
}
