/** How far a server's clock may seem to run ahead of ours between two looks: it is read over a network. */
const STEP_MS = 2_000

/**
 * Notices when a server's clock is put forward: all that it counts by that clock has left its window then,
 * for no reason.
 */
export class ServerClock {
  #aheadMs: number | undefined
  #steps = 0

  /** How often that has happened. */
  get steps(): number {
    return this.#steps
  }

  /**
   * It said `serverMs` to a question that was sent at `nowMs` of our own clock, which is never put anywhere.
   */
  observe(serverMs: number, nowMs: number): void {
    const aheadMs = serverMs - nowMs
    if (this.#aheadMs !== undefined && aheadMs - this.#aheadMs > STEP_MS) this.#steps += 1
    this.#aheadMs = aheadMs
  }
}
