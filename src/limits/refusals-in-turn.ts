/** How many in a turn of the event loop are said at once. */
const AT_ONCE = 500

/**
 * Says refusals at once, or, where many are said, when the turn of the event loop is over: each may bring the
 * next request of its connection into the same turn, which goes on for seconds then.
 */
export class RefusalsInTurn {
  #inTurn = 0
  #unsaid: (() => void)[] = []

  /** `refuse` is called now, or soon. */
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
