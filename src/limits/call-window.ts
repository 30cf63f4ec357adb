import { RecentInterval } from './recent-interval.ts'

/**
 * Smallest window: with fewer calls under way, the event loop would wait for each of them. Also the most that
 * the window may exceed the calls under way by, and so the most that begin at once after an idle time.
 */
const MIN_SIZE = 16
/**
 * Time for which calls may always be under way, in milliseconds: as many as end within it. Cheap calls,
 * thousands a second, gain from that: many of them share a batch of the database and a turn of the loop.
 */
const MIN_TIME_MS = 12
/** Shrinkage of the window for each call that ends. */
const SHRINKAGE_PER_END = 1 / 16

/**
 * Limits the calls under way while others wait. It is a congestion window that reacts to idle time of the
 * event loop instead of lost packets: it grows by the calls that idle time would have been enough for, and
 * shrinks by one for each sixteen calls that end. It settles where the loop is hardly ever idle, whatever the
 * latency of upstreams, with as few calls as possible: the memory of many calls is promoted to V8's old
 * generation, which costs more.
 *
 * The cost of a call follows from the utilization law (Denning and Buzen, 1978): the time that the loop was
 * busy, divided by the calls that ended in it, or that began, where these were more. With a growth of more
 * than twice the calls that there is time for, the load would oscillate with the latency of upstreams: what
 * begins in an idle second comes back as a flood in the next one.
 */
export class CallWindow {
  /** Busy time of the loop, while calls waited, for each call that ended, and for each that began. */
  readonly #endings = new RecentInterval()
  readonly #beginnings = new RecentInterval()
  #underWay = 0
  #size = MIN_SIZE
  #minSize = MIN_SIZE

  /** Whether one more call may begin. */
  get isOpen(): boolean {
    return this.#underWay < Math.max(this.#size, this.#minSize)
  }

  /** Notes that a call has begun; `hasWaited`: the time since the last call that began is measured. */
  callBegan(hasWaited: boolean): void {
    this.#underWay += 1
    if (hasWaited) this.#beginnings.note()
  }

  /** Notes that a call has ended; `isMeasured`: while calls waited. */
  callEnded(isMeasured: boolean): void {
    this.#underWay -= 1
    this.#size = Math.max(MIN_SIZE, this.#size - SHRINKAGE_PER_END)
    if (isMeasured) this.#endings.note()
  }

  /**
   * Notes time that elapsed while calls waited, and the part of it that the event loop was idle. `leastRate`:
   * growth for each idle millisecond in any case, as when the cost is unknown.
   */
  addTime(ms: number, idleMs: number, leastRate: number): void {
    this.#endings.addTime(ms, ms - idleMs)
    this.#beginnings.addTime(ms, ms - idleMs)
    const { ms: endMs = Number.POSITIVE_INFINITY } = this.#endings
    const { ms: beginMs = Number.POSITIVE_INFINITY } = this.#beginnings
    this.#minSize = Math.max(MIN_SIZE, Math.floor(MIN_TIME_MS / endMs))
    const rate = Math.max(1 / endMs, 1 / beginMs, leastRate)
    this.#size = Math.min(this.#size + rate * idleMs, this.#underWay + MIN_SIZE)
  }

  /** Opens the window again, once no call waits. */
  reopen(): void {
    this.#size = this.#underWay + MIN_SIZE
  }
}
