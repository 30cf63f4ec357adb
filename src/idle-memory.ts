import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How often it is looked whether anything is under way. */
const LOOK_MS = 1_000
/** How many looks in a row must find nothing. */
const QUIET_LOOKS = 3
/** Looks from one giving back to the next at the least: a gateway that is asked now and then is not to be held up each time. */
const LOOKS_BETWEEN = 30

type Collect = (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void

/**
 * Gives the memory back that the start, and later each time of work, has left behind: once, when nothing has been under way
 * for three seconds, and not again within half a minute. V8 would keep it (the nursery alone is tens of megabytes) until the
 * next work, which may be far away. Takes some 30 ms.
 */
export function giveBackWhenIdle(visits: () => number): { stop(): void } {
  let quiet = 0
  let since = LOOKS_BETWEEN
  let worked = true
  const timer = setInterval(() => {
    since += 1
    const isQuiet = visits() === 0
    quiet = isQuiet ? quiet + 1 : 0
    worked ||= !isQuiet
    if (!worked || quiet < QUIET_LOOKS || since < LOOKS_BETWEEN) return
    worked = false
    since = 0
    giveBack()
  }, LOOK_MS).unref()
  return { stop: () => clearInterval(timer) }
}

function giveBack(): void {
  // The flag decides whether a new context has the function; taken back, it leaves the compile cache's key as it was.
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  collect({ type: 'major', flavor: 'last-resort' })
}
