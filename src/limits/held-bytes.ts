import { MemoryAllocation, type RequestMemory } from './request-memory.ts'
import type { Owner } from './two-level-pool.ts'

/** Memory that a client holds for a longer time, in changing amounts. */
export class HeldBytes {
  readonly #memory: RequestMemory
  readonly #allocation: MemoryAllocation

  constructor(memory: RequestMemory, owner: Owner) {
    this.#memory = memory
    this.#allocation = new MemoryAllocation(owner)
  }

  /** Takes bytes; returns false and takes nothing if the client may not have them now. */
  take(bytes: number): boolean {
    return bytes === 0 || this.#memory.take(this.#allocation, bytes)
  }

  /** Returns taken bytes, as far as they were not released already. */
  give(bytes: number): void {
    this.#memory.give(this.#allocation, Math.min(bytes, this.#allocation.bytes))
  }

  /** Returns everything. */
  release(): void {
    this.give(this.#allocation.bytes)
  }
}
