import type { Hold } from '../../domain/hold.ts'
import type { HoldFacts } from '../../domain/records/usage.ts'

/** Facts that a call by an operator does not have. */
const NO_FACTS = {
  requested_model: '',
  group: '',
  stream: false,
  price_version: '',
  kind: '',
  prompt_amount: 0,
} as const

/**
 * Permission for one call by which an operator tests a channel. Nothing is held or charged, because no
 * account pays for it.
 */
export class OperatorHold implements Hold {
  readonly facts: HoldFacts
  readonly amount = 0
  #isSettled = false

  constructor(facts: Omit<HoldFacts, keyof typeof NO_FACTS>) {
    this.facts = { ...NO_FACTS, ...facts }
  }

  get isSettled(): boolean {
    return this.#isSettled
  }

  /** Ends the permission; nothing more may be sent for the call. */
  settle(): void {
    this.#isSettled = true
  }
}
