/** Retries that are there for whoever begins, and as many as may be saved up. */
const MAX_SAVED = 50
/** Each call adds so much to what may be retried. */
const PER_CALL = 0.1
/** Retries a second that come back by themselves, so that failover works where calls are few. */
const PER_SECOND = 5

/**
 * How often calls may be tried again, all of them together: where everything fails, retries must not make it
 * worse. In the long run one retry for ten calls, and a few a second besides.
 */
export class RetryBudget {
  #left = MAX_SAVED
  #countedMs: number

  constructor(nowMs: number) {
    this.#countedMs = nowMs
  }

  /** A call begins. */
  callBegan(nowMs: number): void {
    const since = Math.max(0, nowMs - this.#countedMs)
    this.#countedMs = nowMs
    this.#left = Math.min(MAX_SAVED, this.#left + PER_CALL + (since / 1000) * PER_SECOND)
  }

  /** Takes one retry; says whether there was one. */
  take(): boolean {
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
