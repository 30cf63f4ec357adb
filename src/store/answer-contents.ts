import { randomUUID } from 'node:crypto'
import { dayOf, type KeptAnswer } from '../domain/kept-answer.ts'
import type { StoredBytesOfUser } from './operations/signatures-and-response-parts.ts'
import type { RowStore } from './store.ts'

/**
 * Maximum number of bytes stored by one write. It is small, because charges of calls wait for the same
 * commit.
 */
const PART_BYTES = 262_144

/** An answer to be stored, with its content in pieces of any size. */
export type AnswerToStore = Omit<KeptAnswer, 'answerId' | 'parts' | 'bytes'> & {
  readonly pieces: readonly Buffer[]
  /**
   * Number of the last removal of stored answers before the call began. If a later removal concerns the
   * answer, it is not stored. Absent if removals do not matter.
   */
  readonly lastRemoval?: number
}

/**
 * Stores the contents of answers, one part at a time, so that few bytes are written between the charges of
 * calls.
 */
export class AnswerContents {
  readonly #rows: Pick<RowStore, 'write'>
  /** Writes that wait for their turn, by user, in the order of the users' turns. */
  readonly #waiting = new Map<number, (() => void)[]>()
  #isWriting = false
  /** The user who had the last turn. */
  #last: number | undefined

  constructor(rows: Pick<RowStore, 'write'>) {
    this.#rows = rows
  }

  /**
   * Stores the content in parts, and then the row of the answer. Resolves to the result of `storeAnswer`. If
   * a write fails, removes the parts again.
   */
  async store({ pieces, ...answer }: AnswerToStore): Promise<StoredBytesOfUser | undefined> {
    const answerId = randomUUID()
    const day = dayOf(answer.expiresMs)
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
    const parts = Math.ceil(bytes / PART_BYTES)
    const { kind, lookup, userId } = answer
    const stored = { ...answer, answerId, parts, bytes }
    if (parts <= 1)
      return this.#inTurn(userId, () =>
        this.#rows.write('storeAnswer', { ...stored, content: partOf(pieces, 0) }),
      )
    try {
      for (let part = 0; part < parts; part += 1)
        await this.#inTurn(userId, () =>
          this.#rows.write('storeAnswerPart', { userId, day, answerId, part, bytes: partOf(pieces, part) }),
        )
      return await this.#inTurn(userId, () =>
        this.#rows.write('storeAnswer', { ...stored, content: undefined }),
      )
    } catch (error) {
      // If this removal fails too, the parts are removed after the day on which the answer expires.
      await this.#rows.write('removeAnswerParts', { kind, lookup, day, answerId }).catch(() => {})
      throw error
    }
  }

  /** Runs writes one at a time. Users take turns, so that a user does not wait for all answers of another user. */
  async #inTurn<Result>(userId: number, write: () => Promise<Result>): Promise<Result> {
    if (this.#isWriting) await new Promise<void>((resolve) => this.#wait(userId, resolve))
    this.#isWriting = true
    this.#last = userId
    try {
      return await write()
    } finally {
      this.#next()
    }
  }

  #wait(userId: number, start: () => void): void {
    const starts = this.#waiting.get(userId)
    if (starts) starts.push(start)
    else this.#waiting.set(userId, [start])
  }

  #next(): void {
    this.#isWriting = this.#waiting.size > 0
    const [first, second] = this.#waiting
    const next = first?.[0] === this.#last && second ? second : first
    if (!next) return
    const [userId, starts] = next
    const start = starts.shift()
    this.#waiting.delete(userId)
    if (starts.length > 0) this.#waiting.set(userId, starts)
    start?.()
  }
}

/**
 * Copies one part out of the pieces. Without the copy, posting a view to a thread would clone all of the
 * memory that the view belongs to.
 */
function partOf(pieces: readonly Buffer[], part: number): Uint8Array {
  const from = part * PART_BYTES
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0) - from
  const copy = new Uint8Array(Math.min(PART_BYTES, length))
  let at = 0
  for (const piece of pieces) {
    const start = Math.max(0, from - at)
    const end = Math.min(piece.length, from + copy.length - at)
    if (start < end) copy.set(piece.subarray(start, end), at + start - from)
    at += piece.length
    if (at >= from + copy.length) break
  }
  return copy
}
