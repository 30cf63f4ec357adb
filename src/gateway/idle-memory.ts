import process from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Milliseconds between checks whether requests are in progress. */
const SAMPLE_MS = 1_000
/** Number of consecutive idle checks after which memory used by the start is released. */
const QUIET_SAMPLES_AFTER_START = 3
/** Number of consecutive idle checks after which memory used by calls is released. */
const QUIET_SAMPLES_AFTER_WORK = 60
/** Number of checks during which the gateway counts as starting. */
const START_SAMPLES = 60
/**
 * If the process's memory exceeds its size after the start by this factor, all garbage is collected without a
 * long wait.
 */
const LARGE = 1.75
/**
 * Number of consecutive idle checks after which all garbage is collected, if memory has grown by the factor
 * `MUCH_GROWTH` since the start.
 */
const LONG_QUIET_SAMPLES = 600
/**
 * Minimum number of checks between two full collections, unless memory has grown by `MUCH_GROWTH` since the
 * last one.
 */
const SAMPLES_BETWEEN = 600
/** Factor by which the process's memory must have grown, so that a full collection is worthwhile. */
const MUCH_GROWTH = 1.25

type Collect = (
  options: { readonly type: 'major'; readonly flavor?: 'last-resort' } | { readonly type: 'minor' },
) => void

let collect: Collect | undefined

/** Operations on the process's memory; tests replace them. */
interface ProcessMemory {
  readonly collectAll: () => void
  readonly collectYoung: () => void
  readonly trim: () => Promise<void>
  readonly residentBytes: () => number
}

const PROCESS: ProcessMemory = {
  collectAll,
  collectYoung: collectYoungGarbage,
  trim: trimHeap,
  residentBytes: () => process.memoryUsage.rss(),
}

/**
 * Releases memory to the system when the gateway is idle, because V8 would keep it until there is work again.
 * Runs once in the first minute after the start, when no request was in progress for three seconds, and later
 * after each idle minute. This frees only buffers and recent garbage. All other garbage is collected after
 * ten idle minutes, or at once if there is much of it: a full collection makes V8 forget how it optimised the
 * code, so that the next three thousand calls take more than twice as much CPU time. Takes about 30 ms.
 */
export function collectGarbageWhenIdle(
  openRequests: () => number,
  { collectAll: collect, collectYoung, trim, residentBytes }: ProcessMemory = PROCESS,
): { stop(): void } {
  let samples = 0
  let quiet = 0
  let hasWorked = true
  let isTrimmed = false
  /** Bytes of memory after the start; lower if a later idle minute reached less. */
  let startBytes = residentBytes()
  let collectedBytes = Number.POSITIVE_INFINITY
  let sinceCollection = SAMPLES_BETWEEN

  async function collectFully(): Promise<void> {
    collect()
    collectedBytes = residentBytes()
    await trim()
    collectedBytes = Math.min(collectedBytes, residentBytes())
  }

  const timer = setInterval(() => {
    samples += 1
    sinceCollection += 1
    const isQuiet = openRequests() === 0
    quiet = isQuiet ? quiet + 1 : 0
    hasWorked ||= !isQuiet
    const isStart = collectedBytes === Number.POSITIVE_INFINITY && samples < START_SAMPLES
    if (quiet < (isStart ? QUIET_SAMPLES_AFTER_START : QUIET_SAMPLES_AFTER_WORK)) return
    if (!isStart) startBytes = Math.min(startBytes, residentBytes())
    if (isStart) {
      hasWorked = false
      void collectFully().then(() => (startBytes = collectedBytes))
    } else if (hasWorked) {
      hasWorked = false
      isTrimmed = false
      collectYoung()
      void trim().then(() => (isTrimmed = true))
    } else if (
      isTrimmed &&
      residentBytes() > (quiet < LONG_QUIET_SAMPLES ? LARGE : MUCH_GROWTH) * startBytes
    ) {
      if (sinceCollection < SAMPLES_BETWEEN && residentBytes() <= MUCH_GROWTH * collectedBytes) return
      isTrimmed = false
      sinceCollection = 0
      void collectFully()
    }
  }, SAMPLE_MS).unref()
  return { stop: () => clearInterval(timer) }
}

/** Collects the garbage of all generations. Takes about 30 ms, and longer with a large heap. */
export function collectGarbage(): void {
  collector()({ type: 'major' })
}

/** Collects the young generation: the objects that were allocated since the last collection. */
export function collectYoungGarbage(): void {
  collector()({ type: 'minor' })
}

/** Collects all garbage and shrinks V8's reserves. Takes about 30 ms, and longer with a large heap. */
export function collectAll(): void {
  collector()({ type: 'major', flavor: 'last-resort' })
}

function collector(): Collect {
  if (collect) return collect
  // A new context has the function `gc` while the flag is set. The flag is then reset, because the key of the
  // compile cache contains it.
  setFlagsFromString('--expose-gc')
  collect = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  return collect
}

/** The functions of `koffi`, a library that calls C functions, that `trimHeap` uses. */
interface ForeignLibraries {
  load(path: string): { func(declaration: string): TrimFunction }
}

interface TrimFunction {
  async(pad: number, done: (error: unknown) => void): void
}

/**
 * Returns free memory of the C library's heap to the system. Buffers of requests and responses leave gaps
 * there, but glibc by itself returns only memory at the heap's end. Runs on another thread, but allocations
 * must wait for it: half a second for 400 MB. Does nothing if the C library lacks the function, or if `koffi`
 * is not installed.
 */
export async function trimHeap(): Promise<void> {
  if (process.platform !== 'linux') return
  try {
    const { default: libraries } = (await import('koffi')) as { default: ForeignLibraries }
    const trim = libraries.load('libc.so.6').func('int malloc_trim(size_t)')
    await new Promise<void>((resolve) => trim.async(0, () => resolve()))
  } catch {
    // An error is ignored: memory that is not returned stays with the process, which can use it again.
  }
}
