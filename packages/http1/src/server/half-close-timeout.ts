/**
 * Milliseconds. A client that closes its side within this time after a complete request has only ended
 * sending and still waits for the response; a client that closes later counts as gone. A response must also
 * begin within this time after the close.
 */
const HALF_CLOSE_MS = 100
/**
 * Maximum pause, in milliseconds, of a response that has begun. Only sent bytes reveal whether a client is
 * gone or has only ended sending, so a silent upstream could otherwise work for a client that is gone.
 */
const MAX_PAUSE_MS = 10_000

/** Limits the time of a response to a client that has closed its side of the connection. */
export class HalfCloseTimeout {
  readonly #onTimeout: () => void
  #timer: NodeJS.Timeout | undefined
  #isExpired = false
  #needsUpstream = false
  #completeMs = 0

  /** `onTimeout` is called when the timeout has passed, but only if the response needs an upstream. */
  constructor(onTimeout: () => void) {
    this.#onTimeout = onTimeout
  }

  /** Stops the timeout, and forgets the state of the last request. */
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

  /**
   * Whether the request was completed so recently that a client closing its side may still wait for the
   * response.
   */
  get isRecentlyComplete(): boolean {
    return performance.now() - this.#completeMs <= HALF_CLOSE_MS
  }

  /**
   * Starts the timeout, because the client has closed its side. `hasBegun`: a part of the response was sent.
   */
  start(hasBegun: boolean): void {
    clearTimeout(this.#timer)
    this.#isExpired = false
    this.#timer = setTimeout(
      () => {
        this.#isExpired = true
        this.#check()
      },
      hasBegun ? MAX_PAUSE_MS : HALF_CLOSE_MS,
    ).unref()
  }

  /** Restarts the timeout, if it is running, because a part of the response was sent. */
  noteSent(): void {
    if (this.#timer) this.start(true)
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
