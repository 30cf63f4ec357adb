import { performance } from 'node:perf_hooks'

/** The event loop as load shedding needs it: its clocks, and its callbacks. */
export interface EventLoop {
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number
  /** Milliseconds since the start for which the loop waited for events. */
  readonly idleMs: () => number
  /** Calls back after the poll phase, once all input of this turn has been read. */
  readonly afterInput: (callback: () => void) => void
  readonly afterMs: (ms: number, callback: () => void) => void
}

/** The event loop of this thread. */
export const THREAD_EVENT_LOOP: EventLoop = {
  nowMs: () => performance.now(),
  idleMs: () => performance.eventLoopUtilization().idle,
  afterInput: (callback) => void setImmediate(callback),
  afterMs: (ms, callback) => void setTimeout(callback, ms).unref(),
}

/**
 * Maximum milliseconds of work on large responses in one turn of the event loop. Node reads up to 32 chunks
 * of a connection, two megabytes, before it serves the next one.
 */
export const MAX_TURN_MS = 4

/**
 * Shares each turn of the event loop among pieces of work that can wait: reading large responses, and readers
 * of live calls. Once a turn has used its time, responses wait; one of the waiting ones continues in each
 * following turn. Without this, a turn would last longer in proportion to the number of such pieces.
 */
export class TurnBudget {
  readonly #afterTurn: (callback: () => void) => void
  #workMs = 0
  #isScheduled = false
  /** Postponed work, first in, first out. */
  readonly #waiting: (() => void)[] = []

  /** `afterTurn` calls back once the input of this turn has been read. */
  constructor(afterTurn: (callback: () => void) => void) {
    this.#afterTurn = afterTurn
  }

  /**
   * Records work on a response; returns whether the turn's time is used up, so that large ones should wait.
   */
  note(ms: number): boolean {
    this.#workMs += ms
    this.#schedule()
    return this.#workMs >= MAX_TURN_MS
  }

  /** Calls `goOn` when it is its turn, always in a later turn of the event loop. */
  wait(goOn: () => void): void {
    this.#waiting.push(goOn)
    this.#schedule()
  }

  /** Does a piece of work and resolves to its result; in a later turn if the time of this one is used up. */
  async work<Result>(piece: () => Result): Promise<Result> {
    const beganMs = performance.now()
    const result = piece()
    if (this.note(performance.now() - beganMs)) await new Promise<void>((resolve) => this.wait(resolve))
    return result
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#afterTurn(() => {
      this.#isScheduled = false
      this.#workMs = 0
      this.#waiting.shift()?.()
      if (this.#waiting.length > 0) this.#schedule()
    })
  }
}

/** The turns of this thread's event loop. */
export const TURN_BUDGET = new TurnBudget((callback) => void setImmediate(callback))

/** Maximum number of refusals sent immediately in one turn of the event loop. */
const AT_ONCE = 500

/**
 * Sends refusals immediately or, if there are many, after the current turn of the event loop. Each may bring
 * the next request of its connection into the same turn, which could then last for seconds.
 */
export class PacedRefusals {
  #inTurn = 0
  #waiting: (() => void)[] = []

  /** Calls `refuse` at once, or in a later turn of the event loop if many were refused in this one. */
  send(refuse: () => void): void {
    this.#inTurn += 1
    if (this.#inTurn === 1) setImmediate(() => this.#endTurn())
    if (this.#inTurn <= AT_ONCE) refuse()
    else this.#waiting.push(refuse)
  }

  #endTurn(): void {
    const waiting = this.#waiting
    this.#waiting = []
    this.#inTurn = 0
    for (const refuse of waiting) refuse()
  }
}
