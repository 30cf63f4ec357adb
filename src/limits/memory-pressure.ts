import { totalmem } from 'node:os'
import process from 'node:process'
import { getHeapStatistics } from 'node:v8'

/** Part of what there is beyond which no more calls are let in. */
const MOST_PART = 0.75
/** How long a look at the memory is good for, in milliseconds. */
const LOOK_MS = 100
/** How long after a collection that memory asked for another may follow, in milliseconds. */
const BETWEEN_COLLECTIONS_MS = 10_000

/** The memory that is taken, and the most that there may be, in bytes. */
export interface MemoryTaken {
  readonly heap: number
  readonly heapLimit: number
  readonly resident: number
  /** Infinite where the process is in no container that has one. */
  readonly residentLimit: number
}

/** The memory of this process. */
export function memoryTaken(): MemoryTaken {
  const { used_heap_size: heap, heap_size_limit: heapLimit } = getHeapStatistics()
  const constrained = process.constrainedMemory()
  const residentLimit = constrained > 0 && constrained < totalmem() ? constrained : Number.POSITIVE_INFINITY
  return { heap, heapLimit, resident: process.memoryUsage.rss(), residentLimit }
}

/**
 * Tells whether three quarters of the heap's limit, or of the container's, are taken. Part of that may be
 * garbage: before it is said for the first time, and every ten seconds while it is said, `collect` is called.
 */
export class MemoryPressure {
  readonly #taken: () => MemoryTaken
  readonly #collect: () => void
  #lookedMs = Number.NEGATIVE_INFINITY
  #collectedMs = Number.NEGATIVE_INFINITY
  #isHigh = false

  constructor(taken: () => MemoryTaken, collect: () => void) {
    this.#taken = taken
    this.#collect = collect
  }

  /** `nowMs` is that of a clock that never goes back. */
  isHigh(nowMs: number): boolean {
    if (nowMs - this.#lookedMs < LOOK_MS) return this.#isHigh
    this.#lookedMs = nowMs
    this.#isHigh = isTooMuch(this.#taken())
    if (this.#isHigh && nowMs - this.#collectedMs >= BETWEEN_COLLECTIONS_MS) {
      this.#collectedMs = nowMs
      this.#collect()
      this.#isHigh = isTooMuch(this.#taken())
    }
    return this.#isHigh
  }
}

function isTooMuch({ heap, heapLimit, resident, residentLimit }: MemoryTaken): boolean {
  return heap > MOST_PART * heapLimit || resident > MOST_PART * residentLimit
}
