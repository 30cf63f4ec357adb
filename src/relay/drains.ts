/** Responses that may be read to their end at one time after their clients left. */
const MAX_DRAINS = 64

/** Counts the responses that are read to their end for the charge alone. */
export class Drains {
  #running = 0

  /** Begins one; false if too many are under way. */
  begin(): boolean {
    if (this.#running >= MAX_DRAINS) return false
    this.#running += 1
    return true
  }

  end(): void {
    this.#running -= 1
  }
}
