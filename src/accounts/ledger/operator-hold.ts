import type { Hold } from '../../domain/hold.ts'

/**
 * Permission for one call with which an operator tests a channel. Nothing is held or charged, because no
 * account pays for the call.
 */
export class OperatorHold implements Hold {
  readonly id: string
  #isSettled = false

  constructor(id: string) {
    this.id = id
  }

  get isSettled(): boolean {
    return this.#isSettled
  }

  /** Ends the permission; nothing more may be sent for the call. */
  settle(): void {
    this.#isSettled = true
  }
}
