import { type ClockReading, readClocks } from '../accounts/ledger/lease-clock.ts'

const HOUR_MS = 3_600_000
/** Maximum change of the time of day against the monotonic clock between two checks; more counts as a jump. */
const MAX_MOVE_MS = HOUR_MS
/** Time after a jump during which the clock is not trusted. A clock that was wrong is usually set right within it. */
const DISTRUST_MS = 24 * HOUR_MS

/** Notices that the time of day was set by hours, or that the machine slept. */
export class SteadyClock {
  readonly #now: () => ClockReading
  /** Time of day minus the monotonic clock at the last check. */
  #aheadMs: number
  /** End of the distrust by the monotonic clock. */
  #distrustedUntilMs = Number.NEGATIVE_INFINITY

  constructor(now: () => ClockReading = readClocks) {
    this.#now = now
    this.#aheadMs = aheadOf(now())
  }

  /** Whether the time of day has not jumped since the last check, nor in the day before it. */
  isSteady(): boolean {
    const now = this.#now()
    const aheadMs = aheadOf(now)
    if (Math.abs(aheadMs - this.#aheadMs) > MAX_MOVE_MS)
      this.#distrustedUntilMs = now.monotonicMs + DISTRUST_MS
    this.#aheadMs = aheadMs
    return now.monotonicMs >= this.#distrustedUntilMs
  }
}

function aheadOf({ monotonicMs, timeOfDayMs }: ClockReading): number {
  return timeOfDayMs - monotonicMs
}
