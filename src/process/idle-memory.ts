import process from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { trimHeap } from './trim-heap.ts'

/** Interval between checks whether anything is under way. */
const SAMPLE_MS = 1_000
/** Idle checks in a row before the memory of the start is given back. */
const QUIET_SAMPLES_AFTER_START = 3
/** Idle checks in a row before the memory of work is given back. */
const QUIET_SAMPLES_AFTER_WORK = 60
/** Checks that the start takes at most. */
const START_SAMPLES = 60
/** Checks between two collections after work, at least, unless the resident size has grown much. */
const SAMPLES_BETWEEN = 600
/** Growth of the resident size since the last collection, above which the interval does not matter. */
const MUCH_GROWTH = 1.25

type Collect = (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void

/** Operations on the memory of the process, replaced in tests. */
interface ProcessMemory {
  readonly collect: () => void
  readonly trim: () => Promise<void>
  readonly residentBytes: () => number
}

/**
 * Gives memory back to the system when the gateway is idle: once after the start, when nothing was under
 * way for three seconds of its first minute; later when nothing was for a minute, at most every ten unless
 * the resident size has grown much. V8 would keep it until the next work; the nursery alone is tens of
 * megabytes. Not more often: V8 also forgets how its code was used, and the next twenty thousand calls cost a
 * third more. Takes about 30 ms.
 */
export function collectWhenIdle(
  openRequests: () => number,
  { collect, trim, residentBytes }: ProcessMemory = {
    collect: collectAll,
    trim: trimHeap,
    residentBytes: () => process.memoryUsage.rss(),
  },
): { stop(): void } {
  let samples = 0
  let quiet = 0
  let needed = QUIET_SAMPLES_AFTER_START
  let since = SAMPLES_BETWEEN
  let worked = true
  let collectedBytes = Number.POSITIVE_INFINITY
  const timer = setInterval(() => {
    since += 1
    samples += 1
    if (samples === START_SAMPLES) needed = QUIET_SAMPLES_AFTER_WORK
    const isQuiet = openRequests() === 0
    quiet = isQuiet ? quiet + 1 : 0
    worked ||= !isQuiet
    if (!worked || quiet < needed) return
    if (since < SAMPLES_BETWEEN && residentBytes() <= MUCH_GROWTH * collectedBytes) return
    worked = false
    // The collection after the start does not count.
    since = needed === QUIET_SAMPLES_AFTER_START ? SAMPLES_BETWEEN : 0
    needed = QUIET_SAMPLES_AFTER_WORK
    collect()
    collectedBytes = residentBytes()
    void trim().then(() => (collectedBytes = Math.min(collectedBytes, residentBytes())))
  }, SAMPLE_MS).unref()
  return { stop: () => clearInterval(timer) }
}

/** Collects all garbage and shrinks V8's reserves. Takes about 30 ms, and longer with a large heap. */
export function collectAll(): void {
  // A new context has the function while the flag is set. It is reset for the key of the compile cache.
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  collect({ type: 'major', flavor: 'last-resort' })
}
