import { getHeapStatistics } from 'node:v8'
import { collectGarbage, collectYoungGarbage } from './idle-memory.ts'

/** Minimum bytes of garbage for which a garbage collection is worthwhile. */
const MIN_BYTES = 64 * 1024 * 1024

/** Minimum bytes of garbage in buffers for which the youngest garbage is collected. */
const MIN_BUFFER_BYTES = 16 * 1024 * 1024

/** Operations on V8's heap, replaced in tests. */
interface Heap {
  readonly collect: () => void
  /** Bytes in use, including garbage that was not collected yet. */
  readonly usedBytes: () => number
}

/**
 * Starts garbage collections after buffers of contents, most of which are used for a moment only. Without the frequent small
 * ones, the C library takes memory for buffers while others are garbage already, and keeps it.
 */
export function bufferCollector(): Pick<HeapCollector, 'note'> {
  const young = youngCollector()
  const all = new HeapCollector()
  return {
    note(bytes) {
      young.note(bytes)
      all.note(bytes)
    },
  }
}

/** Starts collections of the youngest garbage after buffers that were used for a moment only. */
export function youngCollector(): Pick<HeapCollector, 'note'> {
  return new HeapCollector({ collect: collectYoungGarbage, usedBytes: () => 0 }, MIN_BUFFER_BYTES)
}

const HEAP: Heap = { collect: collectGarbage, usedBytes: () => getHeapStatistics().used_heap_size }

/**
 * Starts garbage collections after large conversations. Without it, V8 lets the heap grow to several times
 * its size: a few conversations of tens of megabytes, one after another, took half a gigabyte. A collection
 * takes longer the more memory stays in use, so that a larger heap waits for more garbage.
 */
export class HeapCollector {
  readonly #heap: Heap
  readonly #minBytes: number
  #bytes = 0
  #keptBytes = 0
  #isDue = false

  constructor(heap: Heap = HEAP, minBytes = MIN_BYTES) {
    this.#heap = heap
    this.#minBytes = minBytes
  }

  /**
   * Adds bytes to the estimate of garbage on the heap. If there is enough, it is collected after the current
   * turn of the event loop.
   */
  note(bytes: number): void {
    this.#bytes += bytes
    if (this.#isDue || this.#bytes < Math.max(this.#minBytes, this.#keptBytes)) return
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
