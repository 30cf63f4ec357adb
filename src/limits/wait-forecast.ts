/** Time constant of the exponential decay of both sums, in milliseconds. */
const DECAY_MS = 1_000

/**
 * Forecasts a call's wait by Little's law: the length of the queue before it, times the recent time for each
 * call that began. That time is measured while calls wait, so that all other work of the event loop is part
 * of it. Both sums decay exponentially.
 */
export class WaitForecast {
  #elapsedMs = 0
  #begun = 0

  /** Notes time that elapsed while calls waited. */
  addTime(ms: number): void {
    const decay = Math.exp(-ms / DECAY_MS)
    this.#elapsedMs = this.#elapsedMs * decay + ms
    this.#begun *= decay
  }

  /** Notes that a call from the queue has begun. */
  callBegan(): void {
    this.#begun += 1
  }

  /** Recent milliseconds for each call that began; undefined before anything was measured. */
  get callMs(): number | undefined {
    return this.#begun === 0 ? undefined : this.#elapsedMs / this.#begun
  }

  /** Milliseconds that a call waits behind `queueLength` others; 0 before anything was measured. */
  waitMs(queueLength: number): number {
    return queueLength * (this.callMs ?? 0)
  }
}
