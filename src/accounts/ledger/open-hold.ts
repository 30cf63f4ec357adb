import type { Hold } from '../../domain/hold.ts'
import type { HoldFacts, ParkedHold, Settlement } from '../../domain/records/usage.ts'
import type { Account } from './balance.ts'
import {
  type ChargedBudget,
  affordableHoldGrowth,
  NO_BUDGETS,
  type ChargedBalances,
} from './charged-balances.ts'
import type { Unaffordable } from './quota-refusal.ts'

/** How long a hold waits for the quota by which it is to be raised. */
export interface RaiseWaitLimits {
  readonly waitMs: number
  /** Returns whether the call has ended; the hold is then not raised any more. */
  readonly isOver: () => boolean
}

/** The ledger that records a hold's changes, or `NO_LEDGER`, which records nothing. */
export interface HoldLedger {
  write(hold: OpenHold): Promise<Error | undefined>
  grow(hold: OpenHold, by: number): boolean
  raise(hold: OpenHold, amount: number, patience: RaiseWaitLimits): Promise<Unaffordable | undefined>
  markProgress(hold: OpenHold, amount: number): void
  park(hold: OpenHold): Promise<boolean>
  settle(hold: OpenHold, settlement: Settlement): Promise<void>
}

const NO_LEDGER: HoldLedger = {
  write: () => Promise.resolve(undefined),
  grow: () => true,
  raise: () => Promise.resolve(undefined),
  markProgress: () => {},
  park: () => Promise.resolve(true),
  settle: () => Promise.resolve(),
}

/**
 * A reservation of quota for a call in this process, from admission to settlement. `settle` is called exactly
 * once.
 */
export class OpenHold implements Hold {
  readonly facts: HoldFacts
  readonly account: Account
  readonly budgets: readonly ChargedBudget[]
  /** Time at which the call was admitted, by `performance.now()`. */
  readonly admittedAt = performance.now()
  /** Position in the ledger's set of open holds. */
  index = -1
  /** The neighbours among the holds that are not written yet; only `UnwrittenHolds` changes them. */
  earlier: OpenHold | undefined
  later: OpenHold | undefined
  /** Why the hold could not grow at the last attempt; set by the ledger. */
  refusal: Unaffordable | undefined
  /** Resolves to whether the hold was written; undefined until the write is queued. */
  #written: Promise<boolean> | undefined
  #isDurable = false
  #writeFailure: Error | undefined
  #settling: Promise<void> | undefined
  #isSettled = false
  #isParked = false
  /**
   * Resolves to whether the hold was parked, which keeps it open beyond this process. Undefined before that
   * begins and after it failed.
   */
  #parking: Promise<boolean> | undefined
  #amount: number
  /** Quota units that were added after `grow` had been refused; the next `grow` uses them first. */
  #spare = 0
  #marked = 0
  readonly #ledger: HoldLedger

  /** Called only by `Ledger.admit` and the static methods below. */
  constructor(ledger: HoldLedger, { account, budgets }: ChargedBalances, facts: HoldFacts, amount: number) {
    this.#ledger = ledger
    this.account = account
    this.budgets = budgets
    this.facts = facts
    this.#amount = amount
  }

  get id(): string {
    return this.facts.id
  }

  /** Hold of a free call: 0 quota units. Neither the hold nor its settlement is recorded. */
  static unrecorded(account: Account, facts: HoldFacts): OpenHold {
    return new OpenHold(NO_LEDGER, { account, budgets: NO_BUDGETS }, facts, 0).#alreadyDurable()
  }

  /** Hold that is a part of another one, which is durable. `ledger` records its changes. */
  static part(ledger: HoldLedger, payer: ChargedBalances, facts: HoldFacts, amount: number): OpenHold {
    return new OpenHold(ledger, payer, facts, amount).#alreadyDurable()
  }

  /** Recreates a hold that an earlier run of the process parked. */
  static takenUp(ledger: HoldLedger, payer: ChargedBalances, parked: ParkedHold): OpenHold {
    const hold = new OpenHold(ledger, payer, parked, parked.amount).#alreadyDurable()
    hold.#isParked = true
    hold.#parking = Promise.resolve(true)
    hold.#marked = parked.progress_amount
    return hold
  }

  #alreadyDurable(): this {
    this.#written = Promise.resolve(true)
    this.#isDurable = true
    return this
  }

  get amount(): number {
    return this.#amount
  }

  /** Cost known so far in quota units. It is charged if the process crashes. */
  get expectedCost(): number {
    return Math.min(this.#amount, this.facts.prompt_amount + this.#marked)
  }

  get isDurable(): boolean {
    return this.#isDurable
  }

  /**
   * Whether the hold is neither on the disk nor being written; after a crash its call would not be charged.
   */
  get isUnwritten(): boolean {
    return this.#written === undefined
  }

  /**
   * Writes the hold, unless that has already begun. Resolves to true once it is durable, or to false if it
   * could not be written; then nothing may be sent for its call. The first byte to the client waits for this.
   */
  whenDurable(): Promise<boolean> {
    // The settlement replaces the hold's own write, and nothing may be written after it.
    if (!this.#written && this.#settling) return isFulfilled(this.#settling)
    return (this.#written ??= this.#write())
  }

  async #write(): Promise<boolean> {
    this.#writeFailure = await this.#ledger.write(this)
    this.#isDurable = !this.#writeFailure
    return this.#isDurable
  }

  /** Whether writing the hold failed; then nothing may be sent for its call. */
  get hasWriteFailed(): boolean {
    return this.#writeFailure !== undefined
  }

  /** Error of writing the hold; undefined if it did not fail. */
  get writeFailure(): Error | undefined {
    return this.#writeFailure
  }

  get isSettled(): boolean {
    return this.#isSettled
  }

  /** Whether the call continues at its upstream without this process. */
  get isParked(): boolean {
    return this.#isParked
  }

  /**
   * Keeps the hold open beyond its call and this process; the process that learns how the call ended settles
   * it. Resolves to true once that is durable. If it resolves to false, the call owns the hold again and must
   * settle it.
   */
  park(): Promise<boolean> {
    if (this.#isSettled) return Promise.resolve(this.#isParked)
    return (this.#parking ??= this.#park())
  }

  async #park(): Promise<boolean> {
    this.#isParked = true
    if (await this.#ledger.park(this)) return true
    this.#isParked = false
    this.#parking = undefined
    return false
  }

  /** Quota units that `grow` could add now. */
  get maxGrowth(): number {
    return this.#spare + Math.max(0, affordableHoldGrowth(this.account, this.budgets))
  }

  /** Adds `by` quota units; returns false and adds nothing if they are not free. */
  grow(by: number): boolean {
    if (this.#isSettled) return false
    const missing = by - this.#spare
    if (missing > 0) {
      if (!this.#ledger.grow(this, missing)) return false
      this.#amount += missing
    }
    this.#spare = Math.max(0, -missing)
    return true
  }

  /** The held quota units in use: all but those that `addSpare` added and `grow` has not used yet. */
  get taken(): number {
    return this.#amount - this.#spare
  }

  /**
   * Raises the hold to `amount`, after waiting for the holds of other calls if only these prevent it. Resolves to
   * the refusal if that is impossible.
   */
  raiseTo(amount: number, patience: RaiseWaitLimits): Promise<Unaffordable | undefined> {
    return this.#ledger.raise(this, amount, patience)
  }

  /** Adds quota units that became free after `grow` had been refused; the next `grow` takes them. */
  addSpare(by: number): void {
    this.#amount += by
    this.#spare += by
  }

  /** Releases quota units of which the ledger has been told. */
  shrink(by: number): void {
    this.#amount -= by
  }

  /** Records the cost of the output so far; it is written with the next commit. */
  markProgress(amount: number): void {
    if (this.#isSettled) return
    this.#marked = Math.max(this.#marked, amount)
    this.#ledger.markProgress(this, amount)
  }

  /**
   * Ends the hold with its charge. Resolves when the charge is durable; the last byte to the client waits for
   * this.
   */
  settle(settlement: Settlement): Promise<void> {
    if (this.#isSettled) throw new Error(`hold ${this.id} was resolved twice`)
    this.#isSettled = true
    this.#settling = this.#ledger.settle(this, settlement)
    return this.#settling
  }
}

function isFulfilled(promise: Promise<void>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  )
}
