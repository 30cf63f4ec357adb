import { GatewayError } from '../errors.ts'
import { CallWindow } from './call-window.ts'
import type { EventLoop } from './event-loop.ts'
import { WaitForecast } from './wait-forecast.ts'

/** The longest wait that a call is let in for, in milliseconds. */
const MOST_WAIT_MS = 2_000
/**
 * Calls that may wait whatever the forecast, where the queue was empty so lately, in milliseconds: they are a
 * burst, and no overload. Of those who have waited for so long, one begins for each pause that passes: what
 * is under way may never leave time for more.
 */
const BURST = 2_048
const BURST_MS = 5_000
/** Milliseconds until it is looked again whether calls may begin, where they may not. */
const PAUSE_MS = 5
/** Calls under way up to which memory is no reason to refuse one: what is taken then is not theirs. */
const FEW = 64

// Made once: thrown thousands of times a second, their stacks would cost as much as all the rest of a
// refusal.
const TOO_MANY = overloaded('more calls come than can be served; try again')
const NO_MEMORY = overloaded('the calls under way take all the memory that they may; try again')
const FULL = overloaded('as many calls are under way as there may be; try again')

function overloaded(message: string): GatewayError {
  return new GatewayError('overloaded', message, { retryAfter: 1 })
}

/** A call whose head has come, and of which nothing was looked at yet. */
export interface WaitingCall {
  /** When it came, in the milliseconds of the event loop. */
  readonly sinceMs: number
  /** Begins it; false where its caller is gone. */
  begin(): boolean
}

/** What overload asks of the memory. */
export interface Memory {
  isHigh(nowMs: number): boolean
}

/**
 * Lets calls in, has them wait, or refuses them before anything is read of them. Calls begin in the order in
 * which they came, as far as the {@link CallWindow} lets them. One that comes is refused if it would wait for
 * more than two seconds, by the {@link WaitForecast}. A queue that was empty within the last five seconds is a
 * burst, whatever the forecast; one that stands is overload (the controlled delay of "Fail at Scale", Maurer
 * 2015, after CoDel, Nichols and Jacobson 2012).
 */
export class Overload {
  readonly #loop: EventLoop
  readonly #memory: Memory
  readonly #window = new CallWindow()
  readonly #forecast = new WaitForecast()
  /** Places of those that have begun are empty. */
  #waiting: (WaitingCall | undefined)[] = []
  /** Place of the first that waits. */
  #first = 0
  /** When the queue was empty last. */
  #emptyMs = 0
  /** It is looked at the end of this turn; after a pause. */
  #isLookingSoon = false
  #isLookingLater = false
  /** What the clocks said at the last look, there being calls that wait. */
  #looked: { readonly nowMs: number; readonly idleMs: number } | undefined

  constructor(loop: EventLoop, memory: Memory) {
    this.#loop = loop
    this.#memory = memory
  }

  /** Calls that wait until they may begin. */
  get waiting(): number {
    return this.#waiting.length - this.#first
  }

  /**
   * Tells why a call cannot be let in, if it cannot. `open` calls are there, this one and those that wait
   * included, of `most` that there may be.
   */
  refusal(nowMs: number, open: number, most: number): GatewayError | undefined {
    if (open > most) return FULL
    if (open > FEW && this.#memory.isHigh(nowMs)) return NO_MEMORY
    const { waiting } = this
    if (waiting < BURST && nowMs - this.#emptyMs < BURST_MS) return undefined
    return this.#forecast.waitMs(waiting) > MOST_WAIT_MS ? TOO_MANY : undefined
  }

  /**
   * Whether a call may begin now. If not, it may `wait`. `ended` is to be called when one that has begun is
   * over.
   */
  begins(): boolean {
    this.#lookSoon()
    const mayBegin = this.waiting === 0 && this.#window.isOpen
    if (mayBegin) this.#window.begun()
    return mayBegin
  }

  /** Has a call wait that may not begin now. */
  wait(call: WaitingCall): void {
    if (this.waiting === 0) this.#emptyMs = call.sinceMs
    this.#waiting.push(call)
  }

  /** Notes that a call that had begun is over. */
  ended(): void {
    this.#window.ended()
    if (this.waiting > 0) this.#lookSoon()
  }

  #lookSoon(): void {
    if (this.#isLookingSoon) return
    this.#isLookingSoon = true
    this.#loop.afterInput(this.#look)
  }

  /** Looks when the turn is over in which calls came or ended, and again a while later while any wait. */
  readonly #look = (): void => {
    this.#isLookingSoon = false
    if (this.waiting === 0) {
      this.#looked = undefined
      this.#window.open()
      return
    }
    const [nowMs, idleMs] = [this.#loop.nowMs(), this.#loop.idleMs()]
    const last = this.#looked
    if (last) {
      this.#forecast.passed(nowMs - last.nowMs)
      this.#window.idle(idleMs - last.idleMs)
    }
    this.#looked = { nowMs, idleMs }
    this.#beginWaiting(nowMs, last ? (nowMs - last.nowMs) / PAUSE_MS : 0)
    if (this.#isLookingLater) return
    this.#isLookingLater = true
    this.#loop.afterMs(PAUSE_MS, this.#lookAgain)
  }

  readonly #lookAgain = (): void => {
    this.#isLookingLater = false
    if (!this.#isLookingSoon) this.#look()
  }

  /** `overdue` calls begin that have waited for long, whatever the window says. */
  #beginWaiting(nowMs: number, overdue: number): void {
    let left = overdue
    for (;;) {
      const call = this.#waiting[this.#first]
      if (!call) return
      if (!this.#window.isOpen) {
        if (left <= 0 || nowMs - call.sinceMs <= BURST_MS) return
        left -= 1
      }
      this.#takeFirst()
      if (!call.begin()) continue
      this.#window.begun()
      this.#forecast.began()
    }
  }

  #takeFirst(): void {
    this.#waiting[this.#first] = undefined
    this.#first += 1
    if (this.#first * 2 < this.#waiting.length) return
    this.#waiting = this.#waiting.slice(this.#first)
    this.#first = 0
  }
}
