import { totalmem } from 'node:os'
import process from 'node:process'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'

/** Share of a memory limit above which usage is high. */
const HIGH_SHARE = 0.75
/** Milliseconds for which a sample of the memory is valid. */
const SAMPLE_VALID_MS = 100
/** Minimum milliseconds between two collections because of high usage. */
const COLLECTION_INTERVAL_MS = 10_000

/** Memory usage and its limits, in bytes. */
export interface MemoryUsage {
  readonly heap: number
  readonly heapLimit: number
  /** 0 if the process has no limit. */
  readonly resident: number
  /** Infinite unless a container limits the process. */
  readonly residentLimit: number
}

/** Memory usage of this process. */
export function memoryUsage(): MemoryUsage {
  const { used_heap_size: heap, heap_size_limit: heapLimit } = getHeapStatistics()
  const constrained = process.constrainedMemory()
  const residentLimit = constrained > 0 && constrained < totalmem() ? constrained : Number.POSITIVE_INFINITY
  // Only read if needed, because reading it can take a millisecond.
  const resident = residentLimit === Number.POSITIVE_INFINITY ? 0 : process.memoryUsage.rss()
  return { heap, heapLimit, resident, residentLimit }
}

/**
 * Detects that more than three quarters of the limit of the heap, or of the container, are used. Some of that
 * may be garbage, so `collect` is called before usage counts as high, and every ten seconds while it does.
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

/** Growth of the heap between two full collections during overload, in percent of what the first one left. */
const OVERLOAD_PERCENT = 150

/**
 * Lets V8's heap grow further between two full collections during overload. With a small heap limit V8 runs a
 * full collection whenever the heap has grown by about 40 %: one per second of 90 ms each, while thousands of
 * calls wait. Without overload the larger heap would cost more than those collections.
 */
export function setOverloadGrowth(isOverload: boolean): void {
  const [major = 0, minor = 0] = process.versions.v8.split('.').map(Number)
  // Later versions may not know the flag, and would log that each time.
  if (major > 14 || (major === 14 && minor > 7)) return
  // 0 leaves the growth to V8, which reads the flag after each full collection.
  setFlagsFromString(`--heap-growing-percent=${isOverload ? OVERLOAD_PERCENT : 0}`)
}
