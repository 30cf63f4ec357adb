/**
 * Minimum number of calls that may run at the same time; with fewer, the event loop would often be idle. It
 * is also the maximum by which the window may exceed the running calls, so that at most this many begin at
 * once after an idle time.
 */
const MIN_SIZE = 16
/**
 * At least as many calls as end within this time, in milliseconds, may run at the same time. Cheap calls
 * (thousands per second) gain from that, because many of them share a database batch and a turn of the event
 * loop.
 */
const MIN_TIME_MS = 12
/** Number of calls by which the window shrinks for each call that ends. */
const SHRINKAGE_PER_END = 1 / 16

/**
 * Limits the calls under way while others wait. It is a congestion window that reacts to idle time of the
 * event loop instead of lost packets: it grows by the number of calls that the idle time would have sufficed
 * for, and shrinks by one for every sixteen calls that end. It settles where the loop is hardly ever idle,
 * regardless of the latency of upstreams, with as few calls as possible, because the memory of many calls is
 * promoted to V8's old generation, which costs more.
 *
 * The cost of a call follows from the utilization law (Denning and Buzen, 1978): the busy time of the loop
 * divided by the number of calls that ended in it, or that began in it if these were more. If the window grew
 * by more than twice the calls for which there is time, the load would oscillate with the latency of
 * upstreams: the calls begun in an idle second would return as a flood in the next one.
 */
export class CongestionWindow {
  /**
   * Busy time of the event loop while calls waited, per call that ended; `#beginnings` has it per call that
   * began.
   */
  readonly #endings = new RecentInterval()
  readonly #beginnings = new RecentInterval()
  #underWay = 0
  #size = MIN_SIZE
  #minSize = MIN_SIZE

  /** Whether another call may begin. */
  get isOpen(): boolean {
    return this.#underWay < Math.max(this.#size, this.#minSize)
  }

  /**
   * Records that a call has begun. `hasWaited` is true if it was in the queue; only then does it count for
   * the recent time per call.
   */
  callBegan(hasWaited: boolean): void {
    this.#underWay += 1
    if (hasWaited) this.#beginnings.note()
  }

  /**
   * Records that a call has ended. `isMeasured` is true if calls are waiting; only then does it count for the
   * recent time per call.
   */
  callEnded(isMeasured: boolean): void {
    this.#underWay -= 1
    this.#size = Math.max(MIN_SIZE, this.#size - SHRINKAGE_PER_END)
    if (isMeasured) this.#endings.note()
  }

  /**
   * Records `ms` milliseconds during which calls waited, of which the event loop was idle for `idleMs`.
   * `leastRate` is the minimum growth of the window per idle millisecond, for when the cost of a call is
   * unknown.
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

  /** Lets as many calls begin at once as after an idle time; called when no call waits any more. */
  reopen(): void {
    this.#size = this.#underWay + MIN_SIZE
  }
}

/**
 * Forecasts how long a call will wait by Little's law: the length of the queue before it, times the recent
 * time per call that began. The time is measured only while calls wait, so that it includes all other work of
 * the event loop.
 */
export class WaitForecast {
  readonly #beginnings = new RecentInterval()

  /** Records `ms` milliseconds that elapsed while calls waited. */
  addTime(ms: number): void {
    this.#beginnings.addTime(ms)
  }

  /** Records that a call from the queue has begun. */
  callBegan(): void {
    this.#beginnings.note()
  }

  /** Milliseconds for which a call waits behind `queueLength` others; 0 before anything was measured. */
  waitMs(queueLength: number): number {
    return queueLength * (this.#beginnings.ms ?? 0)
  }
}

/** Time constant in milliseconds with which both sums of a `RecentInterval` decay. */
const DECAY_MS = 1_000

/**
 * The recent average time per event: a sum of time divided by a number of events. Both decay exponentially.
 */
class RecentInterval {
  #timeMs = 0
  #events = 0

  /**
   * Records `ms` milliseconds of elapsed time, of which only `countedMs` enter the average (for example the
   * busy part).
   */
  addTime(ms: number, countedMs = ms): void {
    const decay = Math.exp(-ms / DECAY_MS)
    this.#timeMs = this.#timeMs * decay + countedMs
    this.#events *= decay
  }

  /** Records an event, or a fraction of one. */
  note(part = 1): void {
    this.#events += part
  }

  /** Milliseconds per event; undefined before the first event. */
  get ms(): number | undefined {
    return this.#events === 0 ? undefined : this.#timeMs / this.#events
  }
}
