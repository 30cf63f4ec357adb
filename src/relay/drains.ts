/** Maximum number of responses that are read to their end at a time after their clients left. */
const MAX_DRAINS = 64

/** Counts the responses that are read to their end only for the charge. */
export class Drains {
  #running = 0

  /** Begins one. Returns false if too many are in progress. */
  begin(): boolean {
    if (this.#running >= MAX_DRAINS) return false
    this.#running += 1
    return true
  }

  end(): void {
    this.#running -= 1
  }
}
