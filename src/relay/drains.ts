/** Answers that may be read on at one time after their callers left. */
const MAX_DRAINS = 64

/** Counts the answers that nobody waits for any more. */
export class Drains {
  #running = 0

  /** Takes a place; false if all are taken. */
  begin(): boolean {
    if (this.#running >= MAX_DRAINS) return false
    this.#running += 1
    return true
  }

  end(): void {
    this.#running -= 1
  }
}
