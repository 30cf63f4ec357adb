import { GatewayError } from '../errors.ts'

/** How often the event loop is looked at, and how often for as long as more calls come than can be served. */
const LOOK_MS = 50
const CLOSE_LOOK_MS = 5
/** How late a look may be. */
const LATE_MS = 25
/** So long at work without a look that was in time is more than a moment, */
const BUSY_MS = 200
/** and it is a crowd if more calls than these were let in meanwhile, and are under way. */
const CROWD = 64
/** Calls of a crowd that are admitted in any case. */
const LEAST = 8
/** Share of the calls under way that is kept when a crowd is detected: there is time for far fewer. */
const OF_A_CROWD = 0.25
/**
 * How late a look may be while there is one; and more for each call refused since the last, or refusing would
 * leave no time for serving.
 */
const CLOSELY_LATE_MS = 1
const MORE_FOR_REFUSED_MS = 0.04
/** No look is late that falls into a long step of a loop that is idle for so much of the time, */
const MUCH_IDLE = 0.15
/** of a time like this. */
const LATELY_MS = 100
/**
 * How many fewer calls may be under way for each that ended before a look that was late, and how many more
 * before one in time.
 */
const LESS_FOR_ENDED = 0.5
const MORE_FOR_ENDED = 0.1
/** Largest decrease at one look: many calls that end at once do not mean that as many will again. */
const MOST_LESS = 0.2
/**
 * There is time for those under way already: how much of what is missing to them is added at a look in time.
 */
const MORE_FOR_OPEN = 0.1
/** The crowd is gone once nobody was refused for so long, and a look was not very late. */
const CALM_MS = 1_000

// Made once: thrown thousands of times a second, their stacks would cost as much as all the rest of a
// refusal.
const TOO_MANY = overloaded('more calls come than can be served; try again')
const FULL = overloaded('as many calls are under way as there may be; try again')

function overloaded(message: string): GatewayError {
  return new GatewayError('overloaded', message, { retryAfter: 1 })
}

/** Clocks, in milliseconds. */
export interface Clocks {
  /** Never goes back. */
  readonly nowMs: () => number
  /** Time that the thread of the event loop was at work. */
  readonly workedMs: () => number
  /** Time that the event loop waited for something to do. */
  readonly idleMs: () => number
}

/**
 * Refuses calls before anything is read of them, where more come than can be served. How late the event loop
 * comes round is how long each step of a call waits. Where a crowd makes it late, only so many calls may be
 * under way as it has time for, fewer after each look that is late and more after each that is not: what is
 * let in is served in good time, rather than all of it late. How many fewer or more goes by how many ended
 * since the last look: what a change comes to shows when the calls under way have ended. A loop that has idle
 * moments has time; looks that fall into a long step of it are no sign of the contrary.
 */
export class Overload {
  readonly #clocks: Clocks
  #timer: NodeJS.Timeout | undefined
  #everyMs = LOOK_MS
  #lookedMs: number
  #workedMs: number
  #idleMs: number
  /** Since looks were last in time: calls that came. And the time worked until then. */
  #letIn = 0
  #inTimeWorkedMs: number
  /** How many calls may be under way, there being a crowd. */
  #ceiling: number | undefined
  /** Share of the recent time that the loop was idle. */
  #idle = 0
  #open = 0
  /** At the last look: calls under way. And let in since, there being a crowd. */
  #openThen = 0
  #letInSince = 0
  /** Calls refused since the last look, and when there was a look that found some. */
  #refused = 0
  #refusedMs = 0

  /** The owner calls `look` itself, or `watch` once. */
  constructor(clocks: Clocks) {
    this.#clocks = clocks
    this.#lookedMs = clocks.nowMs()
    this.#workedMs = clocks.workedMs()
    this.#idleMs = clocks.idleMs()
    this.#inTimeWorkedMs = this.#workedMs
  }

  /** Looks by itself from now on, until it is stopped. */
  watch(): this {
    clearInterval(this.#timer)
    this.#timer = setInterval(() => this.look(), this.#everyMs).unref()
    return this
  }

  /** Looks no more. */
  stop(): void {
    clearInterval(this.#timer)
  }

  /** Takes note of how late this look at the event loop is. */
  look(): void {
    const nowMs = this.#clocks.nowMs()
    const workedMs = this.#clocks.workedMs()
    const idleMs = this.#clocks.idleMs()
    const dueMs = this.#lookedMs + this.#everyMs
    const passedMs = nowMs - this.#lookedMs
    // A loop that did not get its time from the machine is late, but not by what it has to do; by no more
    // than it worked, at any rate.
    const lateMs = Math.min(nowMs - dueMs, workedMs - this.#workedMs)
    const idle = passedMs > 0 ? (idleMs - this.#idleMs) / passedMs : 0
    this.#idle += (idle - this.#idle) * (1 - Math.exp(-passedMs / LATELY_MS))
    this.#lookedMs = nowMs
    this.#workedMs = workedMs
    this.#idleMs = idleMs
    if (this.#ceiling !== undefined) this.#adjust(this.#ceiling, lateMs, nowMs)
    else if (lateMs <= LATE_MS) this.#isInTime()
  }

  /**
   * Lets a call in, or tells why not. `open` calls are under way, this one included, of `most` that there may
   * be.
   */
  refusal(open: number, most: number): GatewayError | undefined {
    if (open > most) return FULL
    this.#letIn += 1
    let ceiling = this.#ceiling
    if (ceiling === undefined) {
      if (open <= CROWD || this.#letIn <= CROWD) return undefined
      if (this.#clocks.workedMs() - this.#inTimeWorkedMs < BUSY_MS) return undefined
      ceiling = this.#gather(open)
    }
    if (open <= ceiling) {
      this.#open = open
      this.#letInSince += 1
      return undefined
    }
    this.#open = open - 1
    this.#refused += 1
    return TOO_MANY
  }

  #gather(open: number): number {
    const ceiling = open * OF_A_CROWD
    this.#ceiling = ceiling
    this.#openThen = open - 1
    this.#lookEvery(CLOSE_LOOK_MS)
    return ceiling
  }

  #adjust(ceiling: number, lateMs: number, nowMs: number): void {
    if (this.#refused > 0) this.#refusedMs = nowMs
    else if (lateMs <= LATE_MS && nowMs - this.#refusedMs > CALM_MS) return this.#disperse()
    const open = this.#open
    const ended = this.#openThen + this.#letInSince - open
    if (this.#idle < MUCH_IDLE && lateMs > CLOSELY_LATE_MS + MORE_FOR_REFUSED_MS * this.#refused) {
      // Where more are under way than may be, what was taken last has yet to show.
      const less = Math.max(1, Math.min(ended * LESS_FOR_ENDED, open * MOST_LESS))
      if (open <= ceiling) this.#ceiling = Math.max(LEAST, open - less)
    } else this.#ceiling = ceiling + Math.max(1, ended * MORE_FOR_ENDED, (open - ceiling) * MORE_FOR_OPEN)
    this.#openThen = open
    this.#letInSince = 0
    this.#refused = 0
  }

  #disperse(): void {
    this.#ceiling = undefined
    this.#letInSince = 0
    this.#isInTime()
    this.#lookEvery(LOOK_MS)
  }

  #isInTime(): void {
    this.#letIn = 0
    this.#inTimeWorkedMs = this.#workedMs
  }

  #lookEvery(everyMs: number): void {
    this.#everyMs = everyMs
    if (this.#timer) this.watch()
  }
}
