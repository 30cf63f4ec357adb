import type { PoolShareOwner } from '../limits/fair-pool.ts'

/** Milliseconds that a check takes in a turn. */
const TURN_MS = 0.25
const FIRST_LENGTH = 256
const MIN_LENGTH = 128
const MAX_LENGTH = 16_384

/** The result of a check is no longer needed, for example because the client has left. */
export class CheckCancelled extends Error {}

/** The user for whom a check is done. */
export type CheckOwner = PoolShareOwner['client']

/**
 * Checks that have had their turn and go on later: one of them in each turn of the event loop, however many there are, so
 * that a step of another call waits for one turn at most. The users have their turns one after another.
 */
class WaitingChecks {
  readonly #ofUsers = new Map<CheckOwner, (() => void)[]>()

  /** Calls `goOn` in a later turn of the event loop. */
  add(owner: CheckOwner, goOn: () => void): void {
    if (this.#ofUsers.size === 0) setImmediate(this.#goOn)
    const waiting = this.#ofUsers.get(owner)
    if (waiting) waiting.push(goOn)
    else this.#ofUsers.set(owner, [goOn])
  }

  readonly #goOn = (): void => {
    const [next] = this.#ofUsers
    if (!next) return
    const [owner, waiting] = next
    this.#ofUsers.delete(owner)
    waiting.shift()?.()
    if (waiting.length > 0) this.#ofUsers.set(owner, waiting)
    if (this.#ofUsers.size > 0) setImmediate(this.#goOn)
  }
}

const WAITING = new WaitingChecks()

/**
 * Divides the check of texts into turns by the time it takes, whatever the texts are, so that other calls run
 * in between. A check that takes less than a turn never waits. It ends when the client has left.
 * `docs/guards.md: Matching`.
 */
export class CheckTurns {
  readonly #owner: CheckOwner
  readonly #isGone: () => boolean
  #length = FIRST_LENGTH
  #turnMs = 0

  /** @param isGone Whether the client has left. */
  constructor(owner: CheckOwner, isGone: () => boolean) {
    this.#owner = owner
    this.#isGone = isGone
  }

  /** Number of characters that are checked at once. */
  get length(): number {
    return this.#length
  }

  /**
   * Notes milliseconds of a check of about `length` characters. Returns a promise if the time of this turn is used up; it
   * resolves in a later turn.
   */
  note(ms: number): Promise<void> | undefined {
    this.#turnMs += ms
    if (ms > TURN_MS) this.#length = Math.max(MIN_LENGTH, this.#length >> 1)
    else if (ms < TURN_MS / 2) this.#length = Math.min(MAX_LENGTH, this.#length << 1)
    if (this.#turnMs < TURN_MS) return undefined
    this.#turnMs = 0
    return new Promise((resolve) => WAITING.add(this.#owner, resolve))
  }

  /**
   * Checks a piece of a text. Returns a promise if the time of this turn is used up; it resolves in a later
   * turn, and rejects with `CheckCancelled`.
   */
  check<Result>(piece: () => Result): Result | Promise<Result> {
    const beganMs = performance.now()
    const result = piece()
    const turn = this.note(performance.now() - beganMs)
    return turn ? this.#inLaterTurn(turn, result) : result
  }

  /** Does a check step by step. Rejects with `CheckCancelled`. */
  async run<Result>(steps: Generator<unknown, Result>): Promise<Result> {
    for (;;) {
      const step = await this.check(() => steps.next())
      if (step.done) return step.value
    }
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
