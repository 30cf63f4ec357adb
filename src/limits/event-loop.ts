import { performance } from 'node:perf_hooks'

/** What overload control needs of the event loop: clocks and callbacks. */
export interface EventLoop {
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number
  /** Milliseconds for which the event loop has waited for events since the start. */
  readonly idleMs: () => number
  /** Calls back after this turn of the event loop has read all input. */
  readonly afterInput: (callback: () => void) => void
  readonly afterMs: (ms: number, callback: () => void) => void
}

export const THREAD_EVENT_LOOP: EventLoop = {
  nowMs: () => performance.now(),
  idleMs: () => performance.eventLoopUtilization().idle,
  afterInput: (callback) => void setImmediate(callback),
  afterMs: (ms, callback) => void setTimeout(callback, ms).unref(),
}

/**
 * Maximum milliseconds of work on large responses in one turn of the event loop. Node itself would read up to
 * 32 chunks (two megabytes) of one connection before it serves the next one.
 */
export const MAX_TURN_MS = 4

/**
 * Limits the time that work which can wait takes in each turn of the event loop: reading large responses, and
 * sending live calls. Once a turn's time is used up, such work waits, and one piece continues in each
 * following turn. Without this, a turn would take longer the more such work there is.
 */
export class TurnBudget {
  readonly #afterTurn: (callback: () => void) => void
  #workMs = 0
  #isScheduled = false
  /** Postponed work, the oldest first. */
  readonly #waiting: (() => void)[] = []

  /** @param afterTurn Calls back after the current turn of the event loop has read all input. */
  constructor(afterTurn: (callback: () => void) => void) {
    this.#afterTurn = afterTurn
  }

  /**
   * Records milliseconds of work on a response. Returns true if the turn's time is used up, so that large
   * responses should wait.
   */
  note(ms: number): boolean {
    this.#workMs += ms
    this.#schedule()
    return this.#workMs >= MAX_TURN_MS
  }

  /** Calls `goOn` in a later turn of the event loop, after work that has waited longer. */
  wait(goOn: () => void): void {
    this.#waiting.push(goOn)
    this.#schedule()
  }

  /**
   * Does a piece of work at once and resolves to its result, but in a later turn of the event loop if the
   * time of this turn is used up.
   */
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

/** The shared budget of this thread's event loop. */
export const TURN_BUDGET = new TurnBudget((callback) => void setImmediate(callback))

/** Maximum number of refusals sent immediately in one turn of the event loop. */
const AT_ONCE = 500

/**
 * Sends refusals at once or, if there are many, after the current turn of the event loop. A client may answer
 * a refusal with its next request in the same turn, which could then last for seconds.
 */
export class DeferredRefusals {
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
