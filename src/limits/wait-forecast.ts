/** Time in which what was measured loses two thirds of its weight, in milliseconds. */
const MEMORY_MS = 1_000

/**
 * Forecasts the wait of a call by Little's law: calls that wait before it, times the time that passed lately
 * for each one that began. That time is measured while calls wait, so that whatever else the loop does
 * meanwhile is part of it. Both counts decay exponentially.
 */
export class WaitForecast {
  #passedMs = 0
  #begun = 0

  /** Notes time that passed while calls waited. */
  passed(ms: number): void {
    const kept = Math.exp(-ms / MEMORY_MS)
    this.#passedMs = this.#passedMs * kept + ms
    this.#begun *= kept
  }

  /** Notes that one of those that waited has begun. */
  began(): void {
    this.#begun += 1
  }

  /** The wait in milliseconds behind so many; 0 while nothing was measured. */
  waitMs(waiting: number): number {
    return this.#begun === 0 ? 0 : (waiting * this.#passedMs) / this.#begun
  }
}
