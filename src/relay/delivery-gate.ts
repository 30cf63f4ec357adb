import type { OpenHold } from '../accounts/ledger/open-hold.ts'

/**
 * Gate before the first byte of a stream: it opens once the call's hold is durable and, where the upstream
 * goes on without its client, parked. `docs/ledger.md: Durability before delivery`.
 */
export class DeliveryGate {
  readonly #hold: OpenHold
  #parking: Promise<boolean> | undefined

  constructor(hold: OpenHold) {
    this.#hold = hold
  }

  /** Whether the hold is parked or being parked: the upstream goes on, whatever becomes of the stream. */
  get isParking(): boolean {
    return this.#parking !== undefined
  }

  /**
   * Undefined where the gate is open; else resolves to whether it opens. `goOn` parks the hold of a call that
   * goes on without its client.
   */
  open(goOn: (() => Promise<boolean>) | undefined): Promise<boolean> | undefined {
    const hold = this.#hold
    if (!goOn || hold.isParked) return hold.isDurable ? undefined : hold.whenDurable()
    return (this.#parking ??= this.#park(goOn))
  }

  /**
   * Whether the call is charged when the end of its response is known, and not now. `isComplete`: that end
   * came with the stream.
   */
  async goesOn(isComplete: boolean): Promise<boolean> {
    const hold = this.#hold
    if (!isComplete) await this.#parking
    return hold.isParked && (hold.isSettled || (!isComplete && (await hold.park())))
  }

  async #park(goOn: () => Promise<boolean>): Promise<boolean> {
    const isParked = (await this.#hold.whenDurable()) && (await goOn())
    if (!isParked) this.#parking = undefined
    return isParked
  }
}
