import process from 'node:process'
import { setFlagsFromString } from 'node:v8'

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
