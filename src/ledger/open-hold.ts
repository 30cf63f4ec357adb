import type { Hold, HoldFacts } from '../domain/hold.ts'
import type { Settlement } from '../domain/settlement.ts'
import { type Account, affordable } from './balance.ts'

/** Takes what becomes of a hold: a ledger, or nobody. */
interface HoldLedger {
  grow(hold: OpenHold, by: number): boolean
  markProgress(hold: OpenHold, amount: number): void
  settle(hold: OpenHold, settlement: Settlement): Promise<void>
}

const NOBODY: HoldLedger = {
  grow: () => true,
  markProgress: () => {},
  settle: () => Promise.resolve(),
}

/**
 * A hold of this process, from its admission to its settlement. It is resolved exactly once, by `settle`.
 */
export class OpenHold implements Hold {
  readonly facts: HoldFacts
  readonly account: Account
  /**
   * Resolves to true when a crash can no longer lose it, to false if it could not be written: then nothing
   * may be sent for it. Gate one waits for it.
   */
  readonly durable: Promise<boolean>
  /** Of the roster of those not yet resolved. */
  index = -1
  #isDurable = false
  #isLost = false
  #settled = false
  #amount: number
  #marked = 0
  readonly #keeper: HoldLedger

  /** Made by `Ledger.admit` and `OpenHold.ofNothing` alone. */
  constructor(
    keeper: HoldLedger,
    account: Account,
    facts: HoldFacts,
    amount: number,
    written: Promise<boolean>,
  ) {
    this.#keeper = keeper
    this.account = account
    this.facts = facts
    this.#amount = amount
    this.durable = written.then((isWritten) => {
      this.#isDurable = isWritten
      this.#isLost = !isWritten
      return isWritten
    })
  }

  /**
   * A hold for a call that costs nothing and is not recorded: nothing of it is written, then or at its
   * settlement.
   */
  static unrecorded(account: Account, facts: HoldFacts): OpenHold {
    return new OpenHold(NOBODY, account, facts, 0, Promise.resolve(true))
  }

  get amount(): number {
    return this.#amount
  }

  /** What it is known to cost so far: what a crash would be charged. */
  get expectedCost(): number {
    return Math.min(this.#amount, this.facts.promptAmount + this.#marked)
  }

  get isDurable(): boolean {
    return this.#isDurable
  }

  /** It could not be written: nothing may be sent for it any more. */
  get hasWriteFailed(): boolean {
    return this.#isLost
  }

  get isSettled(): boolean {
    return this.#settled
  }

  /** Quota units that it could take beside what it has, at this moment. */
  get maxGrowth(): number {
    return affordable(this.account)
  }

  /** Takes `by` more quota units; false, and nothing taken, if that is not affordable. */
  grow(by: number): boolean {
    if (this.#settled || !this.#keeper.grow(this, by)) return false
    this.#amount += by
    return true
  }

  /** Notes what the answer's output is worth so far; written with whatever commit comes next. */
  markProgress(amount: number): void {
    if (this.#settled) return
    this.#marked = Math.max(this.#marked, amount)
    this.#keeper.markProgress(this, amount)
  }

  /** Ends the hold with its charge. Resolves when that is durable: gate two waits for it. */
  settle(settlement: Settlement): Promise<void> {
    if (this.#settled) throw new Error(`hold ${this.facts.id} was resolved twice`)
    this.#settled = true
    return this.#keeper.settle(this, settlement)
  }
}
