import process from 'node:process'
import { setFlagsFromString } from 'node:v8'

/**
 * Flags for threads that are started later. The main thread's young generation keeps the size that it got at
 * the start (`bin/sluice.mjs`); theirs begins small.
 */
const THREAD_FLAGS = ['--min-semi-space-size=0'] as const

/** Flags of V8's garbage collector for a process that serves calls, set once it has started. */
export const COLLECTOR_FLAGS = [
  // V8 allocates objects that mostly survived directly in the old generation. Objects of calls become garbage
  // there, and keep objects of the young generation alive.
  '--no-allocation-site-pretenuring',
  // V8 discards the bytecode of functions that were not called for some collections, and compiles them again
  // after a pause.
  '--no-flush-bytecode',
] as const

/** Flags that later versions of V8 no longer have, each with the last version known to have it. */
const FORMER_COLLECTOR_FLAGS: readonly (readonly [flag: string, major: number, minor: number])[] = [
  // V8 runs a full collection for every 64 MB of external buffers, unless it counts them against the heap's
  // limit.
  ['--external-memory-accounted-in-global-limit', 14, 7],
  // While V8 marks for a full collection, it does not collect the young generation unless the phases may
  // overlap. Under load, marking takes half a second; everything that calls allocate in that time is promoted
  // and causes the next full collection.
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
 * Sets the flags after the start. V8 rejects code compiled under other flags: if they were set before, Node's
 * own precompiled modules would be compiled again in each thread.
 */
export function setCollectorFlags(): void {
  for (const flag of collectorFlags(process.versions.v8)) setFlagsFromString(flag)
}
