/** The event loop as load shedding uses it: its clocks, and the moments to be called back at. */
export interface EventLoop {
  /** Milliseconds of a clock that never goes back. */
  readonly nowMs: () => number
  /** Milliseconds since the start that the loop waited for events. */
  readonly idleMs: () => number
  /** Calls back after the poll phase: once all input of this turn is read. */
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
