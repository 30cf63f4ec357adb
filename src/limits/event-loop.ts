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
export const NODE_LOOP: EventLoop = {
  nowMs: () => performance.now(),
  idleMs: () => performance.eventLoopUtilization().idle,
  afterInput: (callback) => void setImmediate(callback),
  afterMs: (ms, callback) => void setTimeout(callback, ms).unref(),
}
