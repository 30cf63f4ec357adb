/** Retries available at first, and the most that are saved up. */
const MAX_SAVED = 50
/** Retries that each call adds. */
const PER_CALL = 0.1
/** Retries that each second adds, so that failover works where calls are few. */
const PER_SECOND = 5

/**
 * Limits the retries of all calls together, so that they do not multiply an outage: in the long run one for
 * ten calls, and a few a second besides.
 */
export class RetryBudget {
  #left = MAX_SAVED
  #countedMs: number

  constructor(nowMs: number) {
    this.#countedMs = nowMs
  }

  /** Notes that a call begins. */
  callBegan(nowMs: number): void {
    const since = Math.max(0, nowMs - this.#countedMs)
    this.#countedMs = nowMs
    this.#left = Math.min(MAX_SAVED, this.#left + PER_CALL + (since / 1000) * PER_SECOND)
  }

  /** Takes one retry; false where none is left. */
  take(): boolean {
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
