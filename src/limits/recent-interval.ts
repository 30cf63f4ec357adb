/** Time constant of the exponential decay of both sums, in milliseconds. */
const DECAY_MS = 1_000

/** Recent time for each of some events, from the sums of time and of events. Both decay exponentially. */
export class RecentInterval {
  #elapsedMs = 0
  #events = 0

  /** Notes time that elapsed. */
  addTime(ms: number): void {
    const decay = Math.exp(-ms / DECAY_MS)
    this.#elapsedMs = this.#elapsedMs * decay + ms
    this.#events *= decay
  }

  /** Notes an event. */
  note(): void {
    this.#events += 1
  }

  /** Milliseconds for each event; undefined before there was any. */
  get ms(): number | undefined {
    return this.#events === 0 ? undefined : this.#elapsedMs / this.#events
  }
}
