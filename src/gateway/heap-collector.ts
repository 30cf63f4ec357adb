import { getHeapStatistics } from 'node:v8'
import { collectGarbage } from './idle-memory.ts'

/** Minimum bytes of garbage for which a garbage collection is worthwhile. */
const MIN_BYTES = 64 * 1024 * 1024

/** Operations on V8's heap, replaced in tests. */
interface Heap {
  readonly collect: () => void
  /** Bytes in use, including garbage that was not collected yet. */
  readonly usedBytes: () => number
}

const HEAP: Heap = { collect: collectGarbage, usedBytes: () => getHeapStatistics().used_heap_size }

/**
 * Starts garbage collections after large conversations. Without it, V8 lets the heap grow to several times
 * its size: a few conversations of tens of megabytes, one after another, took half a gigabyte. A collection
 * takes longer the more memory stays in use, so that a larger heap waits for more garbage.
 */
export class HeapCollector {
  readonly #heap: Heap
  #bytes = 0
  #keptBytes = 0
  #isDue = false

  constructor(heap: Heap = HEAP) {
    this.#heap = heap
  }

  /**
   * Adds bytes to the estimate of garbage on the heap. If there is enough, it is collected after the current
   * turn of the event loop.
   */
  note(bytes: number): void {
    this.#bytes += bytes
    if (this.#isDue || this.#bytes < Math.max(MIN_BYTES, this.#keptBytes)) return
    this.#isDue = true
    setImmediate(() => this.#collect())
  }

  #collect(): void {
    this.#heap.collect()
    this.#keptBytes = this.#heap.usedBytes()
    this.#bytes = 0
    this.#isDue = false
  }
}
