import process from 'node:process'

/** The event loop as overload sees it: what it spends its time on, and where in it something may be done. */
export interface EventLoop {
  /** Milliseconds; never goes back. */
  readonly nowMs: () => number
  /** Milliseconds that the loop had nothing to do. */
  readonly idleMs: () => number
  /** Calls back once all connections that had something to say in this turn were heard. */
  readonly afterInput: (callback: () => void) => void
  /** Calls back once what runs now, and all that follows from it without waiting, is done. */
  readonly afterStep: (callback: () => void) => void
  readonly afterMs: (ms: number, callback: () => void) => void
}

/** The one that this program runs on. */
export const NODE_LOOP: EventLoop = {
  nowMs: () => performance.now(),
  idleMs: () => performance.eventLoopUtilization().idle,
  afterInput: (callback) => void setImmediate(callback),
  // A tick that a microtask asks for runs when no microtask is left; one that is asked for directly would run
  // before them.
  afterStep: (callback) => queueMicrotask(() => process.nextTick(callback)),
  afterMs: (ms, callback) => void setTimeout(callback, ms).unref(),
}
