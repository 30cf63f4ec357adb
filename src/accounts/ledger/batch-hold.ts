import type { HoldFacts, SettledCall, Settlement } from '../../domain/records/usage.ts'
import type { Ledger } from './ledger.ts'
import { type HoldLedger, OpenHold } from './open-hold.ts'
import { createHoldGrowthRefusal, type Unaffordable } from './quota-refusal.ts'

/** The facts of the hold of a batch, which is charged nothing itself. */
export function factsOfBatchHold(id: string, startedMs: number): HoldFacts {
  const none = { model: '', requested_model: '', channel: '', group: '', session: '', price_version: '' }
  return { id, ...none, kind: '', stream: false, started_ms: startedMs, prompt_amount: 0 }
}

/** What is reserved for a line of a batch, until the line is settled. */
export class LineReserve {
  /** Quota units of the batch's hold that are reserved for the line. */
  amount: number
  /** How the last call for the line ended; undefined before its end, and if it was refused before it began. */
  settlement: { readonly hold: OpenHold; readonly settlement: Settlement } | undefined
  readonly #whole: OpenHold

  constructor(whole: OpenHold, amount: number) {
    this.#whole = whole
    this.amount = amount
  }

  /**
   * The hold of a call for the line, taken out of that of the batch. If it is larger than what is reserved, the hold of the
   * batch grows. Throws `Unaffordable`. The end of the call settles nothing: its settlement is stored here first, and
   * charged by `Ledger.settlePart` once the state of the line is durable.
   */
  holdFor(amount: number, facts: HoldFacts): OpenHold {
    return this.#hold(amount, facts, false)
  }

  /** The hold of a call whose answer comes later: nothing is settled before. Throws `Unaffordable`. */
  holdUntilAnswered(amount: number, facts: HoldFacts): OpenHold {
    return this.#hold(amount, facts, true)
  }

  /** The hold of a call that was answered, which must be charged whatever is affordable. */
  holdAnswered(facts: HoldFacts): OpenHold {
    const ledger = { ...this.#ledgerWith(() => true, false), raise: () => Promise.resolve(undefined) }
    return OpenHold.part(ledger, this.#whole, facts, this.amount)
  }

  #hold(amount: number, facts: HoldFacts, isAnsweredLater: boolean): OpenHold {
    const whole = this.#whole
    const refusal = this.#reserve(amount)
    if (refusal) throw refusal
    this.settlement = undefined
    const canHold = (needed: number): boolean => this.#reserve(needed) === undefined
    return OpenHold.part(this.#ledgerWith(canHold, isAnsweredLater), whole, facts, amount)
  }

  // What earlier calls for the line have reserved is still there, so that only what is missing is added.
  #reserve(needed: number): Unaffordable | undefined {
    const missing = needed - this.amount
    if (missing <= 0) return undefined
    if (!this.#whole.grow(missing)) return createHoldGrowthRefusal(this.#whole, missing, Date.now())
    this.amount = needed
    return undefined
  }

  /** `canHold` reserves what the hold of a call needs in all; it returns false if that is not affordable. */
  #ledgerWith(canHold: (needed: number) => boolean, isAnsweredLater: boolean): HoldLedger {
    return {
      write: () => Promise.resolve(undefined),
      grow: (hold, by) => canHold(hold.amount + by),
      raise: (hold, to) => {
        const refusal = this.#reserve(to)
        if (!refusal && to > hold.taken) hold.grow(to - hold.taken)
        return Promise.resolve(refusal)
      },
      // After a crash the call is made again.
      markProgress() {},
      park: () => Promise.resolve(isAnsweredLater),
      settle: (hold, settlement) => {
        this.settlement = { hold, settlement }
        return Promise.resolve()
      },
    }
  }

  /** Charges the line and releases what is reserved for it. */
  settle(ledger: Pick<Ledger, 'settlePart' | 'releasePart'>, call: SettledCall | undefined): Promise<void> {
    const { amount } = this
    this.amount = 0
    if (call) return ledger.settlePart(this.#whole, amount, call)
    if (amount > 0) ledger.releasePart(this.#whole, amount)
    return Promise.resolve()
  }
}
