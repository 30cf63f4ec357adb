import { GatewayError } from '../errors.ts'
import {
  type RequestSlots,
  NO_SLOT_ERROR,
  type FairSemaphore,
  type SlotEntry,
} from '../limits/fair-semaphore.ts'
import type { Overload } from '../limits/overload.ts'
import { DeferredRefusals } from '../limits/event-loop.ts'
import type { PoolClient } from '../limits/fair-pool.ts'
import type { ClientExchange } from './endpoint.ts'

/** Error of a call whose client disconnected in the queue; it appears only in the log. */
const DISCONNECTED = new GatewayError('overloaded', 'the client disconnected while its call waited')

/**
 * Decides for each call whether it begins at once, waits in a queue, or is refused before its body is read. A
 * call that begins occupies one of a limited number of slots as soon as its API key or address is known.
 */
export class RequestAdmission {
  readonly #overload: Overload
  readonly #slots: RequestSlots
  readonly #refusals = new DeferredRefusals()
  readonly #callEnded = (): void => this.#overload.callEnded()

  constructor(overload: Overload, slots: RequestSlots) {
    this.#overload = overload
    this.#slots = slots
  }

  /**
   * Calls `begin` or `refuse`, at once or later. `open` is the number of requests in progress, including this
   * one.
   */
  enter(
    exchange: ClientExchange,
    open: number,
    begin: () => void,
    refuse: (error: GatewayError) => void,
  ): void {
    const { startedAt, response } = exchange
    const overload = this.#overload
    const refusal = overload.refusal(startedAt, open, this.#slots.bound)
    if (refusal) return this.#refusals.send(() => refuse(refusal))
    if (overload.tryBegin()) {
      response.onClosed(this.#callEnded)
      return begin()
    }
    overload.enqueue({
      arrivedMs: startedAt,
      begin: () => {
        if (response.isAborted) {
          refuse(DISCONNECTED)
          return false
        }
        response.onClosed(this.#callEnded)
        begin()
        return true
      },
    })
  }

  /**
   * Occupies a slot for a model call with this API key, waiting for one if necessary. The end of the response
   * releases it. Resolves to false if the client has disconnected; rejects if no slot became free in time.
   */
  takeCallSlot(exchange: ClientExchange, key: PoolClient): boolean | Promise<boolean> {
    return this.#take(exchange, this.#slots.calls, key)
  }

  /**
   * Occupies a slot for a request to an account endpoint, waiting for one if necessary, as for a model call;
   * slots are shared among address blocks, not keys.
   */
  takeAccountSlot(exchange: ClientExchange, addressBlock: PoolClient): boolean | Promise<boolean> {
    return this.#take(exchange, this.#slots.accounts, addressBlock)
  }

  #take(exchange: ClientExchange, slots: FairSemaphore, client: PoolClient): boolean | Promise<boolean> {
    const entry = slots.enter(client)
    exchange.response.onClosed(() => entry.leave())
    return entry.decided ? entry.decided.then(() => this.#isIn(exchange, entry)) : this.#isIn(exchange, entry)
  }

  #isIn({ response }: ClientExchange, entry: SlotEntry): boolean | Promise<never> {
    // If the response was aborted before the listener was added, the listener is never called.
    if (response.isAborted) entry.leave()
    return response.isAborted || entry.isIn ? entry.isIn : this.#refuse(NO_SLOT_ERROR)
  }

  async #refuse(refusal: GatewayError): Promise<never> {
    await new Promise<void>((resolve) => this.#refusals.send(resolve))
    throw refusal
  }
}
