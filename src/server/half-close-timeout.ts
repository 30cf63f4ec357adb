/**
 * Longest time between a complete request and a half-close that still counts as the mere end of sending; a
 * client that closes later is taken to be gone. Also the time after it in which a response must begin.
 */
const HALF_CLOSE_MS = 100

/** Timeout of a response for a client that has closed its side of the connection. `docs/api.md: Errors`. */
export class HalfCloseTimeout {
  readonly #onTimeout: () => void
  #timer: NodeJS.Timeout | undefined
  #isExpired = false
  #needsUpstream = false
  #completeMs = 0

  /** `onTimeout` is called when time is up and the response needs an upstream. */
  constructor(onTimeout: () => void) {
    this.#onTimeout = onTimeout
  }

  /** Starts over, for the next request. */
  reset(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isExpired = false
    this.#needsUpstream = false
  }

  /** Notes the time at which the request was complete. */
  requestCompleted(): void {
    this.#completeMs = performance.now()
  }

  /** Whether the request was complete so recently that a half-close may be its mere end. */
  get isRecentlyComplete(): boolean {
    return performance.now() - this.#completeMs <= HALF_CLOSE_MS
  }

  /** Starts the timeout: the client has closed its side, and the response has not begun. */
  start(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#isExpired = true
      this.#check()
    }, HALF_CLOSE_MS).unref()
  }

  /** Notes that the response needs an upstream. */
  needsUpstream(): void {
    this.#needsUpstream = true
    this.#check()
  }

  #check(): void {
    if (this.#isExpired && this.#needsUpstream) this.#onTimeout()
  }
}
