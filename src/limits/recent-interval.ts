/** Time constant of the exponential decay of both sums, in milliseconds. */
const DECAY_MS = 1_000

/** Recent time for each of some events, from the sums of time and of events. Both decay exponentially. */
export class RecentInterval {
  #timeMs = 0
  #events = 0

  /** Notes time that elapsed, all of which counts, or a part of it. */
  addTime(ms: number, countedMs = ms): void {
    const decay = Math.exp(-ms / DECAY_MS)
    this.#timeMs = this.#timeMs * decay + countedMs
    this.#events *= decay
  }

  /** Notes an event, or a part of one. */
  note(part = 1): void {
    this.#events += part
  }

  /** Milliseconds for each event; undefined before there was any. */
  get ms(): number | undefined {
    return this.#events === 0 ? undefined : this.#timeMs / this.#events
  }
}
