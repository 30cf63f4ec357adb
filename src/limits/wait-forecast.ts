import { RecentInterval } from './recent-interval.ts'

/**
 * Forecasts the wait of a call by Little's law: the length of the queue before it, times the recent time per
 * call that began. That time is measured while calls wait, so that it includes all other work of the event
 * loop.
 */
export class WaitForecast {
  readonly #beginnings = new RecentInterval()

  /** Adds time that elapsed while calls waited. */
  addTime(ms: number): void {
    this.#beginnings.addTime(ms)
  }

  /** Records that a call from the queue has begun. */
  callBegan(): void {
    this.#beginnings.note()
  }

  /** Milliseconds for which a call waits behind `queueLength` others; 0 before anything was measured. */
  waitMs(queueLength: number): number {
    return queueLength * (this.#beginnings.ms ?? 0)
  }
}
