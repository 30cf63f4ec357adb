/**
 * A caller that closes its side of the connection so soon after its request has said all that it had to say;
 * later it is taken to be gone. An answer may take so long to begin then, where an upstream has to be asked
 * for it.
 */
const HALF_CLOSE_MS = 100

/**
 * How long an answer is still worth making for a caller that has closed its side of the connection.
 * `docs/api.md: Errors`.
 */
export class HalfCloseTimeout {
  readonly #onTimeout: () => void
  #timer: NodeJS.Timeout | undefined
  #isExpired = false
  #needsUpstream = false
  #completeMs = 0

  /** `giveUp` is called when an upstream would have to be waited for longer. */
  constructor(onTimeout: () => void) {
    this.#onTimeout = onTimeout
  }

  /** A request begins. */
  reset(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isExpired = false
    this.#needsUpstream = false
  }

  /** The request is whole. */
  requestCompleted(): void {
    this.#completeMs = performance.now()
  }

  /**
   * Whether the request was whole so lately that a caller which closes its side may do so because that was
   * all.
   */
  get isRecentlyComplete(): boolean {
    return performance.now() - this.#completeMs <= HALF_CLOSE_MS
  }

  /** The caller has closed its side, and its answer has not begun. */
  start(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#isExpired = true
      this.#check()
    }, HALF_CLOSE_MS).unref()
  }

  /** An upstream is about to be asked for the answer. */
  needsUpstream(): void {
    this.#needsUpstream = true
    this.#check()
  }

  #check(): void {
    if (this.#isExpired && this.#needsUpstream) this.#onTimeout()
  }
}
