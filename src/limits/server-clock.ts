/** Minimum jump that counts as a clock step; smaller ones may be network delay. */
const MIN_STEP_MS = 2_000

/**
 * Detects that the server's clock was set forward, which makes everything that the server counts expire
 * early.
 */
export class ServerClock {
  #aheadMs: number | undefined
  #steps = 0

  /** Number of detected steps. */
  get steps(): number {
    return this.#steps
  }

  /**
   * Compares the server's time `serverMs` with `nowMs`, the time of the request on the monotonic clock of
   * this process.
   */
  observe(serverMs: number, nowMs: number): void {
    const aheadMs = serverMs - nowMs
    if (this.#aheadMs !== undefined && aheadMs - this.#aheadMs > MIN_STEP_MS) this.#steps += 1
    this.#aheadMs = aheadMs
  }
}
