import { totalmem } from 'node:os'
import process from 'node:process'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'

/** Share of a memory limit above which memory usage counts as high. */
const HIGH_SHARE = 0.75
/** Milliseconds for which a measurement of memory usage is used again. */
const SAMPLE_VALID_MS = 100
/** Minimum milliseconds between two garbage collections that high usage causes. */
const COLLECTION_INTERVAL_MS = 10_000

/** Memory usage and its limits, in bytes. */
export interface MemoryUsage {
  readonly heap: number
  readonly heapLimit: number
  /** Memory of the whole process; 0 if the process has no limit, because it is then not measured. */
  readonly resident: number
  /** Maximum memory of the whole process; infinite unless a container limits it. */
  readonly residentLimit: number
}

/** Memory usage of this process. */
export function memoryUsage(): MemoryUsage {
  const { used_heap_size: heap, heap_size_limit: heapLimit } = getHeapStatistics()
  const constrained = process.constrainedMemory()
  const residentLimit = constrained > 0 && constrained < totalmem() ? constrained : Number.POSITIVE_INFINITY
  // The memory of the process is measured only if it has a limit, because that can take a millisecond.
  const resident = residentLimit === Number.POSITIVE_INFINITY ? 0 : process.memoryUsage.rss()
  return { heap, heapLimit, resident, residentLimit }
}

/**
 * Detects that more than three quarters of the heap limit or of the container's memory limit are used. Part
 * of that may be garbage, so the garbage is collected before usage counts as high, and again every ten
 * seconds while it is.
 */
export class MemoryPressure {
  readonly #usage: () => MemoryUsage
  readonly #collect: () => void
  /** Called when overload begins and when it ends. */
  readonly setOverload: (isOverload: boolean) => void
  #sampledMs = Number.NEGATIVE_INFINITY
  #collectedMs = Number.NEGATIVE_INFINITY
  #isHigh = false

  constructor(
    usage: () => MemoryUsage,
    collect: () => void,
    setOverload: (isOverload: boolean) => void = () => {},
  ) {
    this.#usage = usage
    this.#collect = collect
    this.setOverload = setOverload
  }

  /** Whether usage is high. `nowMs` is in milliseconds of a monotonic clock. */
  isHigh(nowMs: number): boolean {
    if (nowMs - this.#sampledMs < SAMPLE_VALID_MS) return this.#isHigh
    this.#sampledMs = nowMs
    this.#isHigh = exceedsLimits(this.#usage())
    if (this.#isHigh && nowMs - this.#collectedMs >= COLLECTION_INTERVAL_MS) {
      this.#collectedMs = nowMs
      this.#collect()
      this.#isHigh = exceedsLimits(this.#usage())
    }
    return this.#isHigh
  }
}

function exceedsLimits({ heap, heapLimit, resident, residentLimit }: MemoryUsage): boolean {
  return heap > HIGH_SHARE * heapLimit || resident > HIGH_SHARE * residentLimit
}

/**
 * Maximum growth of the heap between two full garbage collections during overload, in percent of what the
 * first one left.
 */
const OVERLOAD_PERCENT = 150

/**
 * During overload, lets V8's heap grow further between two full garbage collections. With a small heap limit,
 * V8 collects whenever the heap has grown by about 40 %, which would be once per second for 90 ms each, while
 * thousands of calls wait. Without overload, the larger heap would cost more than those collections.
 */
export function setHeapGrowthOnOverload(isOverload: boolean): void {
  const [major = 0, minor = 0] = process.versions.v8.split('.').map(Number)
  // Newer versions of V8 may not have the flag, and would log an error each time.
  if (major > 14 || (major === 14 && minor > 7)) return
  // The value 0 lets V8 decide how far the heap may grow. V8 reads the flag after each full collection.
  setFlagsFromString(`--heap-growing-percent=${isOverload ? OVERLOAD_PERCENT : 0}`)
}
