/** Most that is saved up: so many calls may begin at once after a quiet time. */
const MOST = 64

/**
 * How many of the calls that wait may begin. Calls to a slow upstream cost little now and much when all their
 * answers come at once. So, as in the congestion control of networks, one begins for each that ends
 * ("conservation of packets", Jacobson 1988), and one more for each millisecond that the event loop was idle.
 */
export class BeginCredit {
  #credit = MOST

  /** Whether a call may begin. */
  get isLeft(): boolean {
    return this.#credit >= 1
  }

  /** Notes that a call has begun. */
  spend(): void {
    this.#credit -= 1
  }

  /** Notes calls that ended, and time that the loop had nothing to do. */
  gain(ended: number, idleMs: number): void {
    this.#credit = Math.min(MOST, this.#credit + ended + idleMs)
  }

  /** Fills it up: nobody waits. */
  reset(): void {
    this.#credit = MOST
  }
}
