/**
 * A caller that closes its side of the connection so soon after its request has said all that it had to say;
 * later it is taken to be gone. An answer may take so long to begin then, where an upstream has to be asked
 * for it.
 */
const HALF_CLOSED_MS = 100

/**
 * How long an answer is still worth making for a caller that has closed its side of the connection.
 * `docs/api.md: Errors`.
 */
export class Patience {
  readonly #giveUp: () => void
  #timer: NodeJS.Timeout | undefined
  #isOver = false
  #needsUpstream = false
  #wholeMs = 0

  /** `giveUp` is called when an upstream would have to be waited for longer. */
  constructor(giveUp: () => void) {
    this.#giveUp = giveUp
  }

  /** A request begins. */
  reset(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isOver = false
    this.#needsUpstream = false
  }

  /** The request is whole. */
  requestIsWhole(): void {
    this.#wholeMs = performance.now()
  }

  /**
   * Whether the request was whole so lately that a caller which closes its side may do so because that was
   * all.
   */
  get isFresh(): boolean {
    return performance.now() - this.#wholeMs <= HALF_CLOSED_MS
  }

  /** The caller has closed its side, and its answer has not begun. */
  begin(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#isOver = true
      this.#look()
    }, HALF_CLOSED_MS).unref()
  }

  /** An upstream is about to be asked for the answer. */
  needsUpstream(): void {
    this.#needsUpstream = true
    this.#look()
  }

  #look(): void {
    if (this.#isOver && this.#needsUpstream) this.#giveUp()
  }
}
