import type { HoldFacts, SettledCall, Settlement } from '../../domain/records/usage.ts'
import type { Ledger } from './ledger.ts'
import { type HoldLedger, OpenHold } from './open-hold.ts'
import { createHoldGrowthRefusal } from './quota-refusal.ts'

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
    const grow = (by: number): boolean => {
      if (by > 0 && !whole.grow(by)) return false
      this.amount += Math.max(0, by)
      return true
    }
    const missing = amount - this.amount
    if (!grow(missing)) throw createHoldGrowthRefusal(whole, missing, Date.now())
    this.settlement = undefined
    return OpenHold.part(this.#ledgerWith(grow, isAnsweredLater), whole, facts, amount)
  }

  #ledgerWith(grow: (by: number) => boolean, isAnsweredLater: boolean): HoldLedger {
    const whole = this.#whole
    return {
      write: () => Promise.resolve(undefined),
      grow: (_, by) => grow(by),
      raise: (hold, to) => {
        const by = to - hold.taken
        return Promise.resolve(
          by <= 0 || hold.grow(by) ? undefined : createHoldGrowthRefusal(whole, by, Date.now()),
        )
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
