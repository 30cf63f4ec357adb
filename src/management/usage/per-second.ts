/** Most calls that are shown in a second; more are a gap. */
const CALLS_PER_SECOND = 20
const SECOND_MS = 1_000

/** Counts the calls that were shown since the begin of a second. */
export class PerSecond {
  #beganMs = Number.NEGATIVE_INFINITY
  #shown = 0

  /** How many calls may be shown now; `nowMs`: a clock that never goes back. */
  roomAt(nowMs: number): number {
    if (nowMs - this.#beganMs >= SECOND_MS) {
      this.#beganMs = nowMs
      this.#shown = 0
    }
    return CALLS_PER_SECOND - this.#shown
  }

  take(calls: number): void {
    this.#shown += calls
  }
}
