/** Time constant of the exponential decay of both sums, in milliseconds. */
const DECAY_MS = 1_000

/** Recent time per event, computed from the sums of time and of events. Both decay exponentially. */
export class RecentInterval {
  #timeMs = 0
  #events = 0

  /** Adds elapsed time, all or part of which counts. */
  addTime(ms: number, countedMs = ms): void {
    const decay = Math.exp(-ms / DECAY_MS)
    this.#timeMs = this.#timeMs * decay + countedMs
    this.#events *= decay
  }

  /** Adds an event, or a fraction of one. */
  note(part = 1): void {
    this.#events += part
  }

  /** Milliseconds per event; undefined before the first event. */
  get ms(): number | undefined {
    return this.#events === 0 ? undefined : this.#timeMs / this.#events
  }
}
