import process from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How often it is looked whether anything is under way. */
const LOOK_MS = 1_000
/** How many looks in a row must find nothing: after the start, when nothing has got going, and later. */
const QUIET_AFTER_START = 3
const QUIET_AFTER_WORK = 60
/** Looks that the start takes at the most: what is there later was left by work. */
const START_LOOKS = 60
/** Looks from one giving back after work to the next at the least, unless there is much to give back: */
const LOOKS_BETWEEN = 600
/** so many times what was resident after the last. */
const MUCH = 1.25

type Collect = (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void

/** What is done, and looked at, in its place in tests. */
interface Rim {
  readonly giveBack: () => void
  readonly residentBytes: () => number
}

/**
 * Gives the memory back that the start has left behind, when nothing has been under way for three seconds of
 * its first minute; and later what work has left, when nothing has been for a minute, every ten minutes at
 * most, unless that was much. V8 would keep it (the nursery alone is tens of megabytes) until the next work,
 * which may be far away. Not more often: V8 forgets with it how its code was used, and the next twenty
 * thousand calls cost a third more. Takes some 30 ms.
 */
export function giveBackWhenIdle(
  visits: () => number,
  { giveBack, residentBytes }: Rim = { giveBack: collectAll, residentBytes: () => process.memoryUsage.rss() },
): { stop(): void } {
  let looks = 0
  let quiet = 0
  let needed = QUIET_AFTER_START
  let since = LOOKS_BETWEEN
  let worked = true
  let leftBytes = Number.POSITIVE_INFINITY
  const timer = setInterval(() => {
    since += 1
    looks += 1
    if (looks === START_LOOKS) needed = QUIET_AFTER_WORK
    const isQuiet = visits() === 0
    quiet = isQuiet ? quiet + 1 : 0
    worked ||= !isQuiet
    if (!worked || quiet < needed) return
    if (since < LOOKS_BETWEEN && residentBytes() <= MUCH * leftBytes) return
    worked = false
    // What the start left does not count.
    since = needed === QUIET_AFTER_START ? LOOKS_BETWEEN : 0
    needed = QUIET_AFTER_WORK
    giveBack()
    leftBytes = residentBytes()
  }, LOOK_MS).unref()
  return { stop: () => clearInterval(timer) }
}

/**
 * Collects all that V8 can, and has it shrink what it keeps for more. Takes some 30 ms, and more with a large
 * heap.
 */
export function collectAll(): void {
  // The flag decides whether a new context has the function; taken back, it leaves the compile cache's key as
  // it was.
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  collect({ type: 'major', flavor: 'last-resort' })
}
