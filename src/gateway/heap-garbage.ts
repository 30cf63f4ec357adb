import { getHeapStatistics } from 'node:v8'
import { collectGarbage } from './idle-memory.ts'

/** Minimum bytes of garbage that are collected at once. */
const MIN_BYTES = 64 * 1024 * 1024

/** Operations on V8's heap, replaced in tests. */
interface Heap {
  readonly collect: () => void
  /** Bytes in use, with garbage that was not collected. */
  readonly usedBytes: () => number
}

const HEAP: Heap = { collect: collectGarbage, usedBytes: () => getHeapStatistics().used_heap_size }

/**
 * Collects the garbage of large conversations soon. V8 itself would let it grow to several times the size of
 * the heap: a few of tens of megabytes, one after another, took half a gigabyte. A collection takes time in
 * proportion to what it keeps, so that a larger heap waits for more garbage.
 */
export class HeapGarbage {
  readonly #heap: Heap
  #bytes = 0
  #keptBytes = 0
  #isDue = false

  constructor(heap: Heap = HEAP) {
    this.#heap = heap
  }

  /** Counts garbage; collects it after the current turn of the event loop if there is enough of it. */
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
