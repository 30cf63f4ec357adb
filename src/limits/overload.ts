import { GatewayError } from '../errors.ts'

/** How often the event loop is looked at. */
const LOOK_MS = 50
/** How late a look may be, on average of the last few, before calls are refused. */
const LATE_MS = 50
/** What the latest look counts in that average. */
const WEIGHT = 0.2
/** What one look counts at most: a single pause, for one large body say, is no overload. */
const MOST_LATE_MS = 200
/** By how much the share of refused calls grows with each look that is late, and falls with each that is not. */
const MORE = 0.05
const LESS = 0.02
/** With so few under way it is not they that make it late. */
const FEW = 64
/** Some are always let in: else nothing would tell that the trouble is over. */
const MOST_REFUSED = 0.95

/**
 * Refuses calls before anything is read of them, where more come than can be served: a share of them, which grows for as long as
 * the event loop is late, and shrinks when it is not. What is let in is then served in good time, rather than all of it late.
 */
export class Overload {
  readonly #random: () => number
  readonly #timer: NodeJS.Timeout | undefined
  #late = 0
  #refused = 0

  /** `random` yields numbers in [0, 1). Without `nowMs`, whoever holds it does the looking. */
  constructor(random: () => number, nowMs?: () => number) {
    this.#random = random
    if (!nowMs) return
    let expectedMs = nowMs() + LOOK_MS
    this.#timer = setInterval(() => {
      const now = nowMs()
      this.look(Math.max(0, now - expectedMs))
      expectedMs = now + LOOK_MS
    }, LOOK_MS).unref()
  }

  /** Takes note of how late a look at the event loop was. */
  look(lateMs: number): void {
    this.#late += WEIGHT * (Math.min(lateMs, MOST_LATE_MS) - this.#late)
    this.#refused =
      this.#late > LATE_MS ? Math.min(MOST_REFUSED, this.#refused + MORE) : Math.max(0, this.#refused - LESS)
  }

  /** Lets a call in, or throws `overloaded`. `open` calls are under way, of `most` that there may be. */
  admit(open: number, most: number): void {
    if (open > most) {
      throw new GatewayError(
        'overloaded',
        `${most} calls are under way, which is as many as there may be; try again`,
        {
          retryAfter: 1,
        },
      )
    }
    if (this.#refused > 0 && open > FEW && this.#random() < this.#refused) {
      throw new GatewayError('overloaded', 'more calls come than can be served; try again', { retryAfter: 1 })
    }
  }

  /** Looks no more. */
  stop(): void {
    clearInterval(this.#timer)
  }
}
