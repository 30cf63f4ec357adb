import type { Hold, HoldFacts } from '../domain/hold.ts'

/**
 * The licence for a call that an operator makes to see whether a channel works: nobody's quota pays for it,
 * so nothing is held and nothing is charged. It is good for one call.
 */
export class OperatorHold implements Hold {
  readonly facts: HoldFacts
  readonly amount = 0
  #settled = false

  constructor(facts: HoldFacts) {
    this.facts = facts
  }

  get isSettled(): boolean {
    return this.#settled
  }

  /** Nothing more may be sent for it. */
  settle(): void {
    this.#settled = true
  }
}
