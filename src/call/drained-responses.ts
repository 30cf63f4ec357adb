/** Maximum number of responses that are read to their end at the same time after their clients left. */
const MAX_DRAINS = 64

/** Counts the responses that are read to their end only for the charge. */
export class DrainedResponses {
  #running = 0

  /**
   * Counts a response whose rest will be read for the charge. Returns false if there are already `MAX_DRAINS`
   * of them.
   */
  begin(): boolean {
    if (this.#running >= MAX_DRAINS) return false
    this.#running += 1
    return true
  }

  end(): void {
    this.#running -= 1
  }
}
