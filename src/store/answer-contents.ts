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
  #turn: Promise<unknown> = Promise.resolve()

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
    const { kind, lookup } = answer
    const stored = { ...answer, answerId, parts, bytes }
    if (parts <= 1)
      return this.#inTurn(() => this.#rows.write('storeAnswer', { ...stored, content: partOf(pieces, 0) }))
    try {
      for (let part = 0; part < parts; part += 1)
        await this.#inTurn(() =>
          this.#rows.write('storeAnswerPart', { day, answerId, part, bytes: partOf(pieces, part) }),
        )
      return await this.#inTurn(() => this.#rows.write('storeAnswer', { ...stored, content: undefined }))
    } catch (error) {
      // If this removal fails too, the parts are removed after the day on which the answer expires.
      await this.#rows.write('removeAnswerParts', { kind, lookup, day, answerId }).catch(() => {})
      throw error
    }
  }

  #inTurn<Result>(write: () => Promise<Result>): Promise<Result> {
    const written = this.#turn.then(write)
    this.#turn = written.catch(() => {})
    return written
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
