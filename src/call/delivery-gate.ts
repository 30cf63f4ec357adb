import type { OpenHold } from '../accounts/ledger/open-hold.ts'

/**
 * Gate before the first byte of a stream. It opens once the call's hold (reserved quota) is durable. If the
 * upstream continues without its client, the hold must also be parked, that is kept until the end of the
 * response is known. `docs/ledger.md: Durability before delivery`.
 */
export class DeliveryGate {
  readonly #hold: OpenHold
  #parking: Promise<boolean> | undefined

  constructor(hold: OpenHold) {
    this.#hold = hold
  }

  /**
   * Whether the hold (reserved quota) is kept, or about to be kept, until the end of the response is known.
   * If so, the upstream continues even if the stream fails.
   */
  get isParking(): boolean {
    return this.#parking !== undefined
  }

  /**
   * Returns undefined if the gate is open; otherwise a promise that resolves to whether it opens. `goOn` is
   * given for a call that continues without its client: it keeps the reserved quota until the end of the
   * response is known.
   */
  open(goOn: (() => Promise<boolean>) | undefined): Promise<boolean> | undefined {
    const hold = this.#hold
    if (!goOn || hold.isParked) return hold.isDurable ? undefined : hold.whenDurable()
    return (this.#parking ??= this.#park(goOn))
  }

  /**
   * Resolves to whether the call is charged later, when the end of its response is known. `isComplete`: the
   * stream contained that end.
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
