/**
 * Longest time between a complete request and a half-close that still counts as the mere end of sending; a
 * client that closes later is taken to be gone. Also the time after it in which a response must begin.
 */
const HALF_CLOSE_MS = 100
/**
 * Longest pause of a response that has begun. A client that closed both sides looks like one that closed its
 * sending side until bytes are sent to it: a silent upstream would go on for a client that is gone.
 */
const MAX_PAUSE_MS = 10_000

/** Timeout of a response for a client that has closed its side of the connection. */
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

  /** Starts the timeout: the client has closed its side. `hasBegun`: some of the response was sent. */
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

  /** Starts it over, if it was started: some of the response was sent. */
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
