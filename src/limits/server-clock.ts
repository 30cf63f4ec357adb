/** Smallest jump that counts as a clock step; less may be network delay. */
const MIN_STEP_MS = 2_000

/** Detects a server clock that was set forward, whereupon all that the server counted by it expires early. */
export class ServerClock {
  #aheadMs: number | undefined
  #steps = 0

  /** Number of detected steps. */
  get steps(): number {
    return this.#steps
  }

  /**
   * Compares the server's time `serverMs` with `nowMs`, at which it was requested, of this process' monotonic
   * clock.
   */
  observe(serverMs: number, nowMs: number): void {
    const aheadMs = serverMs - nowMs
    if (this.#aheadMs !== undefined && aheadMs - this.#aheadMs > MIN_STEP_MS) this.#steps += 1
    this.#aheadMs = aheadMs
  }
}
