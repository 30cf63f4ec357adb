/** Maximum number of refusals sent immediately in one turn of the event loop. */
const AT_ONCE = 500

/**
 * Sends refusals immediately or, if there are many, after the current turn of the event loop. Each may bring
 * the next request of its connection into the same turn, which could then last for seconds.
 */
export class PacedRefusals {
  #inTurn = 0
  #unsaid: (() => void)[] = []

  /** Calls `refuse` now or soon. */
  say(refuse: () => void): void {
    this.#inTurn += 1
    if (this.#inTurn === 1) setImmediate(() => this.#turnIsOver())
    if (this.#inTurn <= AT_ONCE) refuse()
    else this.#unsaid.push(refuse)
  }

  #turnIsOver(): void {
    const unsaid = this.#unsaid
    this.#unsaid = []
    this.#inTurn = 0
    for (const refuse of unsaid) refuse()
  }
}
