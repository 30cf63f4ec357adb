import process from 'node:process'
import { setFlagsFromString } from 'node:v8'

/**
 * V8 flags for threads that are started later: their memory for new objects (young generation) starts small.
 * That of the main thread keeps the size that `bin/sluice.mjs` gave it.
 */
const THREAD_FLAGS = ['--min-semi-space-size=0'] as const

/** Flags for V8's garbage collector in a process that serves calls, set once it has started. */
export const COLLECTOR_FLAGS = [
  // Without this flag V8 places new objects directly into the old generation if earlier ones of their kind
  // mostly survived. Objects of calls then become garbage there, and keep other objects from being collected.
  '--no-allocation-site-pretenuring',
  // Without this flag V8 discards the bytecode of functions that were not used for a while, and must compile
  // them again after a pause.
  '--no-flush-bytecode',
] as const

/** Flags that newer versions of V8 do not have, each with the last version that has it. */
const FORMER_COLLECTOR_FLAGS: readonly (readonly [flag: string, major: number, minor: number])[] = [
  // Without this flag V8 runs a full collection for every 64 MB of buffers outside of its heap.
  ['--external-memory-accounted-in-global-limit', 14, 7],
  // Without this flag V8 does not collect the young generation while it marks objects for a full collection.
  // Under load, marking takes half a second; everything that calls allocate in that time goes to the old
  // generation and causes the next full collection.
  ['--no-separate-gc-phases', 13, 6],
]

/** The flags that this version of V8 has. */
export function collectorFlags(version: string): readonly string[] {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const former = FORMER_COLLECTOR_FLAGS.filter(
    ([, lastMajor, lastMinor]) => major < lastMajor || (major === lastMajor && minor <= lastMinor),
  )
  return [...COLLECTOR_FLAGS, ...former.map(([flag]) => flag)]
}

/** Sets the flags for threads; must be called before the first one is started. */
export function setThreadFlags(): void {
  for (const flag of THREAD_FLAGS) setFlagsFromString(flag)
}

/**
 * Sets the garbage collector's flags after the start. V8 does not use precompiled code that was made under
 * other flags, so if they were set earlier, Node's own modules would be compiled again in each thread.
 */
export function setCollectorFlags(): void {
  for (const flag of collectorFlags(process.versions.v8)) setFlagsFromString(flag)
}
