import { RecentInterval } from './recent-interval.ts'

/**
 * Forecasts a call's wait by Little's law: the length of the queue before it, times the recent time for each
 * call that began. That time is measured while calls wait, so that all other work of the event loop is part
 * of it.
 */
export class WaitForecast {
  readonly #beginnings = new RecentInterval()

  /** Notes time that elapsed while calls waited. */
  addTime(ms: number): void {
    this.#beginnings.addTime(ms)
  }

  /** Notes that a call from the queue has begun. */
  callBegan(): void {
    this.#beginnings.note()
  }

  /** Milliseconds that a call waits behind `queueLength` others; 0 before anything was measured. */
  waitMs(queueLength: number): number {
    return queueLength * (this.#beginnings.ms ?? 0)
  }
}
