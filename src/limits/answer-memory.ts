import { MemoryAllocation, type RequestMemory } from './request-memory.ts'
import type { Owner } from './two-level-pool.ts'

/** Bytes that are not counted: small answers, and streams of small events, take nothing. */
const UNCOUNTED_BYTES = 64 * 1024

/**
 * Memory for what one call holds of an upstream's answer: all of it, or an event that is not complete. Bytes
 * that have come cannot be refused, as the upstream is paid for them: while memory is short, the call reads
 * no more.
 */
export class AnswerMemory {
  readonly #memory: RequestMemory
  readonly #allocation: MemoryAllocation
  #counted = 0
  #giveUp: (() => void) | undefined

  constructor(memory: RequestMemory, owner: Owner) {
    this.#memory = memory
    this.#allocation = new MemoryAllocation(owner)
  }

  /** Whether more is held than there was memory for. */
  get isShort(): boolean {
    return this.#allocation.bytes < this.#counted
  }

  /** Notes how many bytes are held. */
  resize(bytes: number): void {
    const counted = Math.max(0, bytes - UNCOUNTED_BYTES)
    if (counted === this.#counted) return
    this.#counted = counted
    if (counted === 0) this.#giveUp?.()
    const missing = counted - this.#allocation.bytes
    if (missing > 0) this.#memory.take(this.#allocation, missing)
    else if (missing < 0) this.#memory.give(this.#allocation, -missing)
  }

  /** Whether any memory is taken or waited for. */
  get isUsed(): boolean {
    return this.#counted > 0
  }

  /** Waits while memory is short, or until nothing is held any more. */
  async whenEnough(): Promise<void> {
    let isWanted = true
    while (isWanted && this.isShort) {
      const missing = this.#counted - this.#allocation.bytes
      isWanted = await this.#memory.takeInTurn(this.#allocation, missing, (giveUp) => (this.#giveUp = giveUp))
    }
    this.#giveUp = undefined
    // Less may be held than when the wait began.
    const surplus = this.#allocation.bytes - this.#counted
    if (surplus > 0) this.#memory.give(this.#allocation, surplus)
  }
}
