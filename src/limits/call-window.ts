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
/** Growth of the window for each idle millisecond of the event loop. */
const GROWTH_PER_IDLE_MS = 2
/** Shrinkage of the window for each call that ends. */
const SHRINKAGE_PER_END = 1 / 16

/**
 * Limits the calls under way while others wait. It is a congestion window that reacts to idle time of the
 * event loop instead of lost packets: it grows by two for each idle millisecond, and shrinks by one for each
 * sixteen calls that end. It settles where the loop is hardly ever idle, whatever the latency of upstreams,
 * with as few calls as possible: the memory of many calls is promoted to V8's old generation, which costs
 * more.
 */
export class CallWindow {
  #underWay = 0
  #size = MIN_SIZE
  #minSize = MIN_SIZE

  /** Whether one more call may begin. */
  get isOpen(): boolean {
    return this.#underWay < Math.max(this.#size, this.#minSize)
  }

  /** Notes how many milliseconds of the event loop each call takes, while calls waited. */
  setCost(callMs: number): void {
    this.#minSize = Math.max(MIN_SIZE, Math.floor(MIN_TIME_MS / callMs))
  }

  /** Notes that a call has begun. */
  callBegan(): void {
    this.#underWay += 1
  }

  /** Notes that a call has ended. */
  callEnded(): void {
    this.#underWay -= 1
    this.#size = Math.max(MIN_SIZE, this.#size - SHRINKAGE_PER_END)
  }

  /** Notes idle time of the event loop while calls waited. */
  addIdleTime(ms: number): void {
    this.#size = Math.min(this.#size + GROWTH_PER_IDLE_MS * ms, this.#underWay + MIN_SIZE)
  }

  /** Opens the window again, once no call waits. */
  reopen(): void {
    this.#size = this.#underWay + MIN_SIZE
  }
}
