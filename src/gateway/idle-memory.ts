import process from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Interval between checks whether anything is under way. */
const SAMPLE_MS = 1_000
/** Number of consecutive idle checks after which the memory of the start is released. */
const QUIET_SAMPLES_AFTER_START = 3
/** Number of consecutive idle checks after which the memory of calls is released. */
const QUIET_SAMPLES_AFTER_WORK = 60
/** Maximum number of checks that belong to the start. */
const START_SAMPLES = 60
/** Resident size, as a multiple of that after the start, above which everything is collected at once. */
const LARGE = 1.75
/**
 * Number of consecutive idle checks after which everything is collected, if the resident size is a quarter
 * above that after the start.
 */
const LONG_QUIET_SAMPLES = 600
/** Minimum number of checks between two full collections, unless the resident size has grown much. */
const SAMPLES_BETWEEN = 600
/** Factor by which the resident size has grown much. */
const MUCH_GROWTH = 1.25

type Collect = (
  options: { readonly type: 'major'; readonly flavor?: 'last-resort' } | { readonly type: 'minor' },
) => void

let collect: Collect | undefined

/** Operations on the memory of the process, replaced in tests. */
interface ProcessMemory {
  readonly collectAll: () => void
  readonly collectYoung: () => void
  readonly trim: () => Promise<void>
  readonly residentBytes: () => number
}

const PROCESS: ProcessMemory = {
  collectAll,
  collectYoung: () => collector()({ type: 'minor' }),
  trim: trimHeap,
  residentBytes: () => process.memoryUsage.rss(),
}

/**
 * Releases memory to the system when the gateway is idle; V8 would keep it until there is work again, and the
 * young generation alone takes tens of megabytes. Runs once after the start, when nothing was under way for
 * three seconds within the first minute, and later when nothing was for a minute. That releases only buffers
 * and young garbage. The remaining garbage is collected after ten minutes, or at once if there is much of it,
 * because a full collection makes V8 forget how its code was used, so that the next three thousand calls cost
 * more than twice as much. Takes about 30 ms.
 */
export function collectWhenIdle(
  openRequests: () => number,
  { collectAll: collect, collectYoung, trim, residentBytes }: ProcessMemory = PROCESS,
): { stop(): void } {
  let samples = 0
  let quiet = 0
  let hasWorked = true
  let isTrimmed = false
  /** Resident size after the start, without memory that a later idle minute released. */
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

/** Collects all garbage and shrinks V8's reserves. Takes about 30 ms, and longer with a large heap. */
export function collectAll(): void {
  collector()({ type: 'major', flavor: 'last-resort' })
}

function collector(): Collect {
  if (collect) return collect
  // A new context has the function while the flag is set. The flag is then reset, because it is part of the
  // key of the compile cache.
  setFlagsFromString('--expose-gc')
  collect = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  return collect
}

/** Part of the library that calls functions of the C library. */
interface ForeignLibraries {
  load(path: string): { func(declaration: string): TrimFunction }
}

interface TrimFunction {
  async(pad: number, done: (error: unknown) => void): void
}

/**
 * Returns the free memory of the C library's heap to the system. Buffers of requests and responses leave
 * holes there, and glibc by itself returns only its end. Runs on another thread, but allocations wait for it:
 * half a second for 400 MB. Does nothing if the C library has no such function, or if `koffi` is not
 * installed.
 */
export async function trimHeap(): Promise<void> {
  if (process.platform !== 'linux') return
  try {
    const { default: libraries } = (await import('koffi')) as { default: ForeignLibraries }
    const trim = libraries.load('libc.so.6').func('int malloc_trim(size_t)')
    await new Promise<void>((resolve) => trim.async(0, () => resolve()))
  } catch {
    // The process keeps the memory and can use it again.
  }
}
