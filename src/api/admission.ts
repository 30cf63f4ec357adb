import { GatewayError } from '../errors.ts'
import { type CallSlots, NO_SLOT } from '../limits/call-slots.ts'
import type { Overload } from '../limits/overload.ts'
import { RefusalsInTurn } from '../limits/refusals-in-turn.ts'
import type { Client } from '../limits/shared-pool.ts'
import type { Entry, SharedSlots } from '../limits/shared-slots.ts'
import type { Visit } from './endpoint.ts'

// Nobody hears it: it is what the log says.
const LEFT = new GatewayError('overloaded', 'the caller left while its call waited')

/**
 * Where calls come in: each begins at once or when its turn comes, or is refused before anything is read of
 * it; and takes one of the slots once it is known whose it is.
 */
export class Admission {
  readonly #overload: Overload
  readonly #slots: CallSlots
  readonly #refusals = new RefusalsInTurn()
  readonly #ended = (): void => this.#overload.ended()

  constructor(overload: Overload, slots: CallSlots) {
    this.#overload = overload
    this.#slots = slots
  }

  /** Calls `begin` or `refuse`, now or later. `open` visits are under way, this one included. */
  enter(visit: Visit, open: number, begin: () => void, refuse: (error: GatewayError) => void): void {
    const { begunMs, response } = visit
    const overload = this.#overload
    const refusal = overload.refusal(begunMs, open, this.#slots.bound)
    if (refusal) return this.#refusals.say(() => refuse(refusal))
    if (overload.begins()) {
      response.onClosed(this.#ended)
      return begin()
    }
    overload.wait({
      sinceMs: begunMs,
      begin: () => {
        if (response.isLost) {
          refuse(LEFT)
          return false
        }
        response.onClosed(this.#ended)
        begin()
        return true
      },
    })
  }

  /**
   * Takes a slot of a key's until the call is answered or lost, waiting for one if need be; false where its
   * caller left. Rejects where none was free in time.
   */
  takeCallSlot(visit: Visit, key: Client): boolean | Promise<boolean> {
    return this.#take(visit, this.#slots.calls, key)
  }

  /** The same of an account endpoint's slots, for a block of addresses. */
  takeAccountSlot(visit: Visit, block: Client): boolean | Promise<boolean> {
    return this.#take(visit, this.#slots.accounts, block)
  }

  #take(visit: Visit, slots: SharedSlots, client: Client): boolean | Promise<boolean> {
    const entry = slots.enter(client)
    visit.response.onClosed(() => entry.leave())
    return entry.decided ? entry.decided.then(() => this.#isIn(visit, entry)) : this.#isIn(visit, entry)
  }

  #isIn({ response }: Visit, entry: Entry): boolean | Promise<never> {
    // Lost before there was anything to give back.
    if (response.isLost) entry.leave()
    return response.isLost || entry.isIn ? entry.isIn : this.#turnAway(NO_SLOT)
  }

  async #turnAway(refusal: GatewayError): Promise<never> {
    await new Promise<void>((resolve) => this.#refusals.say(resolve))
    throw refusal
  }
}
