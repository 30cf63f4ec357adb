import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How often it is looked whether anything is under way. */
const LOOK_MS = 1_000
/** How many looks in a row must find nothing. */
const QUIET_LOOKS = 3

type Collect = (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void

/**
 * Gives the memory back that the start, and later each time of work, has left behind: once, when nothing has been under way
 * for three seconds. V8 would keep it (the nursery alone is tens of megabytes) until the next work, which may be far away.
 * Takes some 30 ms.
 */
export function giveBackWhenIdle(visits: () => number): { stop(): void } {
  let quiet = 0
  const timer = setInterval(() => {
    quiet = visits() === 0 ? quiet + 1 : 0
    if (quiet === QUIET_LOOKS) giveBack()
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
