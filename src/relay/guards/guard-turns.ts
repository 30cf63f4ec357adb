import { TurnBudget } from '../../limits/event-loop.ts'

/** Milliseconds of checks in a turn of the event loop, and those that a piece of a text should take. */
const TURN_MS = 1
const PIECE_MS = 0.5
/** Milliseconds between two turns while there is other work, and for which it is expected to go on. */
const PAUSE_MS = 1
const BUSY_MS = 50
/** Milliseconds that other work in a turn takes at least. */
const OTHER_MS = 0.1
const FIRST_LENGTH = 256
const MIN_LENGTH = 128
const MAX_LENGTH = 16_384

/** The result of a check is no longer needed, for example because the client has left. */
export class CheckCancelled extends Error {}

/** When the checks of guards go on: after other work, and while there is any, with pauses for it. */
class PausesForOthers {
  #checkMs = 0
  #busyUntilMs = -Infinity

  /** Notes milliseconds of a check. */
  note(ms: number): void {
    this.#checkMs += ms
  }

  readonly afterTurn = (callback: () => void): void => {
    const beganMs = performance.now()
    const checkedMs = this.#checkMs
    setImmediate(() => {
      const nowMs = performance.now()
      const otherMs = nowMs - beganMs - (this.#checkMs - checkedMs)
      if (otherMs > OTHER_MS) this.#busyUntilMs = nowMs + BUSY_MS
      if (nowMs < this.#busyUntilMs) setTimeout(callback, PAUSE_MS)
      else callback()
    })
  }
}

const PAUSES = new PausesForOthers()
const BUDGET = new TurnBudget(PAUSES.afterTurn, TURN_MS)

/**
 * Notes milliseconds of a check. Returns a promise if the time for checks in this turn is used up; it resolves
 * in a later turn.
 */
export function noteCheck(ms: number): Promise<void> | undefined {
  PAUSES.note(ms)
  return BUDGET.note(ms) ? new Promise((resolve) => BUDGET.wait(resolve)) : undefined
}

/**
 * Divides the check of texts into turns by the time it takes, whatever the texts are, so that other calls run
 * in between. It ends when the client has left. `docs/guards.md: Matching`.
 */
export class GuardTurns {
  readonly #isGone: () => boolean
  #length = FIRST_LENGTH
  #workMs = 0

  /** @param isGone Whether the client has left. */
  constructor(isGone: () => boolean) {
    this.#isGone = isGone
  }

  /** Milliseconds that the checks have taken so far. */
  get workMs(): number {
    return this.#workMs
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
    const beganMs = performance.now()
    const result = piece()
    const tookMs = performance.now() - beganMs
    this.#workMs += tookMs
    if (tookMs > PIECE_MS) this.#length = Math.max(MIN_LENGTH, this.#length >> 1)
    else if (tookMs < PIECE_MS / 4) this.#length = Math.min(MAX_LENGTH, this.#length << 1)
    const turn = noteCheck(tookMs)
    return turn ? this.#inLaterTurn(turn, result) : result
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

  async #inLaterTurn<Result>(turn: Promise<void>, result: Result): Promise<Result> {
    await turn
    if (this.#isGone()) throw new CheckCancelled('the client has left')
    return result
  }
}
