/** Number of retries available at first, and the maximum that can be saved. */
const MAX_SAVED = 50
/** Retries that each call adds to the budget. */
const PER_CALL = 0.1
/** Retries added per second, so that failover also works with few calls. */
const PER_SECOND = 5

/**
 * Limits the retries of all calls together where calls have failed before, so that they do not multiply the load of
 * an outage: in the long run one per ten calls, plus a few per second. Moves to other accounts count, but are never
 * refused. `docs/operations.md: Channels that fail`.
 */
export class RetryBudget {
  #left = MAX_SAVED
  #countedMs: number

  constructor(nowMs: number) {
    this.#countedMs = nowMs
  }

  /**
   * Records that a call begins. Adds `PER_CALL` retries for the call, and `PER_SECOND` retries for each
   * second since the last call.
   */
  callBegan(nowMs: number): void {
    const since = Math.max(0, nowMs - this.#countedMs)
    this.#countedMs = nowMs
    this.#left = Math.min(MAX_SAVED, this.#left + PER_CALL + (since / 1000) * PER_SECOND)
  }

  /** Takes one retry. Returns false if none is left. */
  take(): boolean {
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
