import process from 'node:process'
import { setFlagsFromString } from 'node:v8'

/** Growth of the heap between two full collections in overload, in percent of what the first left. */
const OVERLOAD_PERCENT = 150

/**
 * Lets V8's heap grow further between two full collections while there is overload. With a small heap limit
 * V8 makes one whenever the heap has grown by some 40 %: one a second while thousands of calls wait, of 90 ms
 * each. Not at other times, when the larger heap costs more than those collections.
 */
export function setOverloadGrowth(isOverload: boolean): void {
  const [major = 0, minor = 0] = process.versions.v8.split('.').map(Number)
  // Later ones may not know the flag, and would say so in the log each time.
  if (major > 14 || (major === 14 && minor > 7)) return
  // 0 leaves the growth to V8, which reads the flag after each full collection.
  setFlagsFromString(`--heap-growing-percent=${isOverload ? OVERLOAD_PERCENT : 0}`)
}
