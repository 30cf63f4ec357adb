import { GatewayError } from '../errors.ts'
import { CongestionWindow, WaitForecast } from './congestion-window.ts'
import type { EventLoop } from './event-loop.ts'

/** Maximum forecast wait in milliseconds; a call that would wait longer is refused. */
const MAX_WAIT_MS = 2_000
/**
 * Maximum length of a queue that counts as a short burst. During a burst, calls are accepted regardless of
 * the forecast.
 */
const MAX_BURST = 2_048
/**
 * Milliseconds for which a queue counts as a burst after it was last empty. Of the calls that have waited
 * longer, one begins at each poll even if the window is full, because running calls might never leave time
 * for others.
 */
const BURST_MS = 5_000
/**
 * Milliseconds between two polls of the queue while calls wait. If the event loop is idle, the window grows
 * by at least one per poll, regardless of the estimated cost of a call.
 */
const POLL_MS = 5
/**
 * Number of open calls up to which none is refused because of high memory usage, because so few calls do not
 * cause it.
 */
const MIN_OPEN = 64

// This error is created once: at thousands of refusals per second, capturing stack traces would cost as much
// as everything else.
const TOO_MANY = overloaded('more calls arrive than can be served; try again')
const NO_MEMORY = overloaded('the calls under way use all available memory; try again')
const FULL = overloaded('the maximum of calls under way is reached; try again')

function overloaded(message: string): GatewayError {
  return new GatewayError('overloaded', message, { retryAfter: 1 })
}

/** A call in the queue, of which only the request head has been read. */
export interface WaitingCall {
  /** Time of arrival, in milliseconds on the clock of the event loop. */
  readonly arrivedMs: number
  /** Begins the call; returns false if its client has disconnected. */
  begin(): boolean
}

/** Calls that were refused because of overload. */
export interface CallsRefusedByOverload {
  readonly count: number
  /** Message of the latest refusal. */
  readonly reason: string
}

/** The memory functions that overload control needs. */
export interface MemoryFunctions {
  /** Whether too much memory is used. `nowMs` is in milliseconds of a monotonic clock. */
  isHigh(nowMs: number): boolean
  /** Called when overload begins and when it ends. */
  setOverload(isOverload: boolean): void
}

/**
 * Overload control: decides for each call whether it begins, waits in a queue, or is refused before its body
 * is read. Queued calls begin in order of arrival, as fast as the {@link CongestionWindow} allows. A call is
 * refused if its forecast wait ({@link WaitForecast}) exceeds two seconds, unless the queue was empty within
 * the last five seconds: a queue that soon empties is a burst, but one that does not is overload (controlled
 * delay, from "Fail at Scale", Maurer 2015, after CoDel, Nichols and Jacobson 2012).
 */
export class Overload {
  readonly #loop: EventLoop
  readonly #memory: MemoryFunctions
  readonly #window = new CongestionWindow()
  readonly #forecast = new WaitForecast()
  /** Queue. Entries before `#first` have begun and are undefined. */
  #queue: (WaitingCall | undefined)[] = []
  /** Index of the first waiting call. */
  #first = 0
  /** Whether a call was refused because of its forecast wait since the queue was last empty. */
  #isOverload = false
  /** When the queue was last empty, in milliseconds. */
  #emptyMs = 0
  /** Whether the queue will be served at the end of this turn of the event loop. */
  #isScheduled = false
  /** Whether a timer to serve the queue is set. */
  #isPolling = false
  #refused = 0
  #lastRefusal: GatewayError | undefined
  /**
   * Time and idle time, in milliseconds, when the queue was last served; undefined while the queue is empty.
   */
  #lastServed: { readonly nowMs: number; readonly idleMs: number } | undefined

  constructor(loop: EventLoop, memory: MemoryFunctions) {
    this.#loop = loop
    this.#memory = memory
  }

  /** Number of calls in the queue. */
  get waiting(): number {
    return this.#queue.length - this.#first
  }

  /** Number of calls refused so far, and why the last one was. */
  get shed(): CallsRefusedByOverload {
    return { count: this.#refused, reason: this.#lastRefusal?.message ?? '' }
  }

  /**
   * Returns the error if a call must be refused, otherwise undefined. `open` is the number of running and
   * waiting calls including this one, `max` its maximum.
   */
  refusal(nowMs: number, open: number, max: number): GatewayError | undefined {
    const error = this.#reasonToRefuse(nowMs, open, max)
    if (error) {
      this.#refused += 1
      this.#lastRefusal = error
    }
    return error
  }

  #reasonToRefuse(nowMs: number, open: number, max: number): GatewayError | undefined {
    if (open > max) return FULL
    if (open > MIN_OPEN && this.#memory.isHigh(nowMs)) return NO_MEMORY
    const { waiting } = this
    if (waiting < MAX_BURST && nowMs - this.#emptyMs < BURST_MS) return undefined
    if (this.#forecast.waitMs(waiting) <= MAX_WAIT_MS) return undefined
    this.#setOverload(true)
    return TOO_MANY
  }

  /**
   * Begins a call if it may begin at once; `callEnded` must then be called at its end. Returns false if the
   * call must wait in the queue.
   */
  tryBegin(): boolean {
    this.#schedule()
    const mayBegin = this.waiting === 0 && this.#window.isOpen
    if (mayBegin) this.#window.callBegan(false)
    return mayBegin
  }

  /** Adds a call to the queue, after `tryBegin` returned false. */
  enqueue(call: WaitingCall): void {
    if (this.waiting === 0) this.#emptyMs = call.arrivedMs
    this.#queue.push(call)
  }

  /** Records the end of a call that had begun. */
  callEnded(): void {
    const isWaiting = this.waiting > 0
    this.#window.callEnded(isWaiting)
    if (isWaiting) this.#schedule()
  }

  #setOverload(isOverload: boolean): void {
    if (isOverload === this.#isOverload) return
    this.#isOverload = isOverload
    this.#memory.setOverload(isOverload)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#loop.afterInput(this.#serve)
  }

  /**
   * Begins queued calls. Runs after turns of the event loop in which calls arrived or ended, and at regular
   * intervals.
   */
  readonly #serve = (): void => {
    this.#isScheduled = false
    if (this.waiting === 0) {
      this.#lastServed = undefined
      this.#window.reopen()
      this.#setOverload(false)
      return
    }
    const [nowMs, idleMs] = [this.#loop.nowMs(), this.#loop.idleMs()]
    const last = this.#lastServed
    if (last) {
      this.#forecast.addTime(nowMs - last.nowMs)
      this.#window.addTime(nowMs - last.nowMs, idleMs - last.idleMs, 1 / POLL_MS)
    }
    this.#lastServed = { nowMs, idleMs }
    this.#beginWaiting(nowMs, last ? (nowMs - last.nowMs) / POLL_MS : 0)
    if (this.#isPolling) return
    this.#isPolling = true
    this.#loop.afterMs(POLL_MS, this.#poll)
  }

  readonly #poll = (): void => {
    this.#isPolling = false
    if (!this.#isScheduled) this.#serve()
  }

  /**
   * Begins as many queued calls as the window allows. In addition, up to `maxOverdue` calls that have waited
   * longer than `BURST_MS` begin although the window is full.
   */
  #beginWaiting(nowMs: number, maxOverdue: number): void {
    let overdueLeft = maxOverdue
    for (;;) {
      const call = this.#queue[this.#first]
      if (!call) return
      if (!this.#window.isOpen) {
        if (overdueLeft <= 0 || nowMs - call.arrivedMs <= BURST_MS) return
        overdueLeft -= 1
      }
      this.#dequeue()
      if (!call.begin()) continue
      this.#window.callBegan(true)
      this.#forecast.callBegan()
    }
  }

  #dequeue(): void {
    this.#queue[this.#first] = undefined
    this.#first += 1
    if (this.#first * 2 < this.#queue.length) return
    this.#queue = this.#queue.slice(this.#first)
    this.#first = 0
  }
}
