import { MemoryAllocation, type RequestMemory } from './request-memory.ts'
import type { Owner } from './two-level-pool.ts'

/**
 * Bytes that are not counted, so that small responses, and streams of small events, take no memory from the
 * pool.
 */
const UNCOUNTED_BYTES = 64 * 1024

/**
 * Memory for the part of an upstream's response that a call holds: all of it, or an incomplete event. Bytes
 * that have arrived cannot be refused, because the upstream is paid for them; while memory is short, the call
 * stops reading.
 */
export class ResponseMemory {
  readonly #memory: RequestMemory
  readonly #allocation: MemoryAllocation
  #counted = 0
  #giveUp: (() => void) | undefined

  constructor(memory: RequestMemory, owner: Owner) {
    this.#memory = memory
    this.#allocation = new MemoryAllocation(owner)
  }

  /** Whether more is held than memory was available for. */
  get isShort(): boolean {
    return this.#allocation.bytes < this.#counted
  }

  /** Sets the number of bytes held. */
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
    // Fewer bytes may be held now than when the wait began.
    const surplus = this.#allocation.bytes - this.#counted
    if (surplus > 0) this.#memory.give(this.#allocation, surplus)
  }
}
