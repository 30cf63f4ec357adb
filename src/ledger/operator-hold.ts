import type { Hold, HoldFacts } from '../domain/hold.ts'

/**
 * Permission for one call by which an operator tests a channel. Nobody pays for it, so nothing is held or
 * charged.
 */
export class OperatorHold implements Hold {
  readonly facts: HoldFacts
  readonly amount = 0
  #isSettled = false

  constructor(facts: HoldFacts) {
    this.facts = facts
  }

  get isSettled(): boolean {
    return this.#isSettled
  }

  /** Ends the permission: nothing more may be sent for it. */
  settle(): void {
    this.#isSettled = true
  }
}
