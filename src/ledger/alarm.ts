/** A sleep that can be ended early. A ring between two sleeps ends the next one. */
export class Alarm {
  #rung = Promise.withResolvers<void>()

  ring(): void {
    this.#rung.resolve()
  }

  /** Sleeps for so many milliseconds, or until a ring; not at all for 0. */
  async sleep(ms: number): Promise<void> {
    if (ms > 0) {
      const timer = setTimeout(() => this.ring(), ms).unref()
      await this.#rung.promise
      clearTimeout(timer)
    }
    this.#rung = Promise.withResolvers<void>()
  }
}
