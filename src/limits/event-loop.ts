/** The event loop as overload sees it: what it spends its time on, and where in it something may be done. */
export interface EventLoop {
  /** Milliseconds; never goes back. */
  readonly nowMs: () => number
  /** Milliseconds that the loop had nothing to do. */
  readonly idleMs: () => number
  /** Calls back once all connections that had something to say in this turn were heard. */
  readonly afterInput: (callback: () => void) => void
  readonly afterMs: (ms: number, callback: () => void) => void
}

/** The one that this program runs on. */
export const NODE_LOOP: EventLoop = {
  nowMs: () => performance.now(),
  idleMs: () => performance.eventLoopUtilization().idle,
  afterInput: (callback) => void setImmediate(callback),
  afterMs: (ms, callback) => void setTimeout(callback, ms).unref(),
}
