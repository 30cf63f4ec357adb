import process from 'node:process'
import { setFlagsFromString } from 'node:v8'

/**
 * Flags for threads that are started later: the main thread's nursery keeps the size that it got at the start
 * (`bin/sluice.mjs`), and theirs begin small.
 */
const THREAD_FLAGS = ['--min-semi-space-size=0'] as const

/** Flags of V8's garbage collector for a process that serves calls, set once it has started. */
export const COLLECTOR_FLAGS = [
  // V8 allocates objects that mostly survived directly in the old generation, where those of calls become
  // garbage that refers to the young one.
  '--no-allocation-site-pretenuring',
  // V8 throws away the bytecode of functions that were not called for some collections, and compiles them
  // anew after a pause.
  '--no-flush-bytecode',
] as const

/** Flags that later versions of V8 do not know, with the last one that is known to have them. */
const FORMER_COLLECTOR_FLAGS: readonly (readonly [flag: string, major: number, minor: number])[] = [
  // V8 runs a full collection for every 64 MB of external buffers, unless it counts them with the heap's
  // limit.
  ['--external-memory-accounted-in-global-limit', 14, 7],
  // While V8 marks for a full collection, it collects nothing of the young generation, unless the phases may
  // overlap. Under load, marking takes half a second: all that calls allocate meanwhile is promoted, and
  // brings about the next full collection.
  ['--no-separate-gc-phases', 13, 6],
]

/** The flags that a version of V8 knows. */
export function collectorFlags(version: string): readonly string[] {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const former = FORMER_COLLECTOR_FLAGS.filter(
    ([, lastMajor, lastMinor]) => major < lastMajor || (major === lastMajor && minor <= lastMinor),
  )
  return [...COLLECTOR_FLAGS, ...former.map(([flag]) => flag)]
}

/** Sets the flags for threads, before the first one is started. */
export function setThreadFlags(): void {
  for (const flag of THREAD_FLAGS) setFlagsFromString(flag)
}

/**
 * Sets the flags. V8 rejects code that was compiled under other flags: if these were set before the start,
 * Node's own modules, whose code it brings along compiled, would be compiled anew, in each thread.
 */
export function setCollectorFlags(): void {
  for (const flag of collectorFlags(process.versions.v8)) setFlagsFromString(flag)
}
