import { TURN_BUDGET, type TurnBudget } from '../../limits/event-loop.ts'

/** Milliseconds that a piece of a text should take, so that several fit into a turn of the event loop. */
const PIECE_MS = 1
const FIRST_LENGTH = 256
const MIN_LENGTH = 64
const MAX_LENGTH = 16_384

/** The result of a check is no longer needed, for example because the client has left. */
export class CheckCancelled extends Error {}

/**
 * Divides the check of texts into turns by the time it takes, whatever the texts are, so that other calls run
 * in between. It ends when the client has left. `docs/guards.md: Matching`.
 */
export class GuardTurns {
  readonly #isGone: () => boolean
  readonly #budget: Pick<TurnBudget, 'note' | 'wait'>
  readonly #nowMs: () => number
  #length = FIRST_LENGTH

  /** @param isGone Whether the client has left. */
  constructor(
    isGone: () => boolean,
    budget: Pick<TurnBudget, 'note' | 'wait'> = TURN_BUDGET,
    nowMs = () => performance.now(),
  ) {
    this.#isGone = isGone
    this.#budget = budget
    this.#nowMs = nowMs
  }

  /** Number of characters that are checked at once. */
  get length(): number {
    return this.#length
  }

  /**
   * Checks a piece of a text. Returns a promise if the time of this turn is used up; it resolves in a later
   * turn, and rejects with `CheckCancelled`.
   */
  check<Result>(piece: () => Result): Result | Promise<Result> {
    const beganMs = this.#nowMs()
    const result = piece()
    const tookMs = this.#nowMs() - beganMs
    if (tookMs > PIECE_MS) this.#length = Math.max(MIN_LENGTH, this.#length >> 1)
    else if (tookMs < PIECE_MS / 4) this.#length = Math.min(MAX_LENGTH, this.#length << 1)
    return this.#budget.note(tookMs) ? this.#inLaterTurn(result) : result
  }

  /** Checks a text piece by piece. `step` checks it up to a position and returns what can be sent on. */
  async checkLong(text: string, step: (end: number) => string): Promise<string> {
    let checked = ''
    let end = 0
    do {
      const to = Math.min(end + this.#length, text.length)
      const piece = this.check(() => step(to))
      checked += typeof piece === 'string' ? piece : await piece
      end = to
    } while (end < text.length)
    return checked
  }

  async #inLaterTurn<Result>(result: Result): Promise<Result> {
    await new Promise<void>((resolve) => this.#budget.wait(resolve))
    if (this.#isGone()) throw new CheckCancelled('the client has left')
    return result
  }
}
