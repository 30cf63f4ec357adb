/**
 * Calls that may be under way whatever the loop has to do, as with fewer it would wait for each of them; and
 * the most that may begin at once after a quiet time.
 */
const FEW = 16
/** Growth for each millisecond that the loop was idle, and shrinkage for each call that ends. */
const PER_IDLE_MS = 2
const LEAVING = 1 / 16

/**
 * How many calls may be under way while others wait. It is a congestion window that goes by the event loop
 * instead of lost packets: it grows by two for each millisecond that the loop was idle, and shrinks by one for
 * each sixteen that end. So it settles where the loop is hardly ever idle, however long an upstream takes, with
 * as few calls as do for that: many are slower, since what they need grows old in V8's heap.
 */
export class CallWindow {
  #underWay = 0
  #size = FEW

  /** Whether one more may begin. */
  get isOpen(): boolean {
    return this.#underWay < this.#size
  }

  /** Notes that a call has begun. */
  begun(): void {
    this.#underWay += 1
  }

  /** Notes that a call is over. */
  ended(): void {
    this.#underWay -= 1
    this.#size = Math.max(FEW, this.#size - LEAVING)
  }

  /** Notes time that the loop had nothing to do. */
  idle(ms: number): void {
    this.#size = Math.min(this.#size + PER_IDLE_MS * ms, this.#underWay + FEW)
  }

  /** Opens it: nobody waits. */
  open(): void {
    this.#size = this.#underWay + FEW
  }
}
