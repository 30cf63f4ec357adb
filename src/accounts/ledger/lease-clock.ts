/**
 * Time without an answer of the bank (the database that lends quota) after which this node stops spending its
 * leases. The bank takes them back after 60 s by its own clock.
 */
const LEASE_VALID_MS = 50_000
/**
 * Maximum change of the difference between the time of day and the monotonic clock; more means that the clock
 * was set.
 */
const MAX_MOVE_MS = 2_000
/**
 * Interval of the timer that shows that this process runs; and the time without it after which the process
 * counts as having been suspended.
 */
const TICK_MS = 1_000
const SUSPENDED_MS = 5_000

/** One moment as both clocks show it, in milliseconds. */
export interface ClockReading {
  readonly monotonicMs: number
  readonly timeOfDayMs: number
}

/** Reads both clocks at the same moment. */
export function readClocks(): ClockReading {
  return { monotonicMs: performance.now(), timeOfDayMs: Date.now() }
}

/**
 * Determines how long this node may spend quota lent by the bank without an answer of the bank. If the clock
 * was set or the process was suspended, the bank may have measured more time than this node's monotonic
 * clock. It must then answer before lent quota is spent again.
 */
export class LeaseClock {
  readonly #now: () => ClockReading
  readonly #ticking: NodeJS.Timeout
  #validUntilMs = Number.NEGATIVE_INFINITY
  /** Time of day minus the monotonic clock when the bank was last asked. */
  #aheadMs = 0
  #tickMs: number
  #resumedMs = Number.NEGATIVE_INFINITY

  constructor(now: () => ClockReading = readClocks) {
    this.#now = now
    this.#tickMs = now().monotonicMs
    this.#ticking = setInterval(() => this.tick(), TICK_MS).unref()
  }

  /** Whether the bank may have given this node up as lost, or soon will, so that leases must not be spent. */
  get mayBeFenced(): boolean {
    const { monotonicMs, timeOfDayMs } = this.#now()
    return (
      monotonicMs > this.#validUntilMs ||
      monotonicMs - this.#tickMs > SUSPENDED_MS ||
      Math.abs(timeOfDayMs - monotonicMs - this.#aheadMs) > MAX_MOVE_MS
    )
  }

  /** Records that the bank has answered a request sent at that moment. */
  answered({ monotonicMs, timeOfDayMs }: ClockReading): void {
    if (monotonicMs < this.#resumedMs) return
    this.#validUntilMs = monotonicMs + LEASE_VALID_MS
    this.#aheadMs = timeOfDayMs - monotonicMs
  }

  /** Ends the use of the lent quota, because another process now uses this node's name. */
  end(): void {
    this.#validUntilMs = Number.NEGATIVE_INFINITY
  }

  /** Records that the process is running; called at each tick. */
  tick(): void {
    const { monotonicMs } = this.#now()
    if (monotonicMs - this.#tickMs > SUSPENDED_MS) {
      this.#resumedMs = monotonicMs
      this.#validUntilMs = Number.NEGATIVE_INFINITY
    }
    this.#tickMs = monotonicMs
  }

  close(): void {
    clearInterval(this.#ticking)
  }
}
