import type { OutgoingBody } from '@sluice/http1'
import type { FormPart } from '@sluice/wire/multipart'
import type { SpoolFile } from './spool.ts'

/** Size in bytes of the pieces in which a body is read from disk while it is sent. */
const PIECE_BYTES = 65_536

/** Bytes of a body, in memory or on disk. */
export type StoredBytes = Buffer | SpoolFile

/** A body with the contents of some parts replaced; all other bytes are unchanged. */
export class EditedForm implements OutgoingBody {
  readonly length: number
  readonly #bytes: StoredBytes
  /** Pieces of the edited body in order, each with its position. */
  readonly #pieces: readonly Piece[]

  /** `replacements` must not overlap. */
  constructor(bytes: StoredBytes, replacements: readonly Replacement[]) {
    this.#bytes = bytes
    const pieces: Piece[] = []
    let length = 0
    const add = (source: Buffer | { readonly from: number }, size: number): void => {
      if (size > 0) pieces.push({ at: length, size, source })
      length += size
    }
    let from = 0
    for (const { part, text } of [...replacements].sort((a, b) => a.part.start - b.part.start)) {
      add({ from }, part.start - from)
      const content = typeof text === 'string' ? Buffer.from(text) : text
      add(content, content.length)
      from = part.end
    }
    add({ from }, bytes.length - from)
    this.#pieces = pieces
    this.length = length
  }

  whole(): Buffer | undefined {
    const bytes = this.#bytes
    if (!Buffer.isBuffer(bytes)) return undefined
    return Buffer.concat(
      this.#pieces.map(({ source, size }) =>
        Buffer.isBuffer(source) ? source : bytes.subarray(source.from, source.from + size),
      ),
    )
  }

  async read(position: number): Promise<Buffer> {
    const piece = this.#pieces.find(({ at, size }) => position < at + size)
    if (!piece) throw new RangeError('there is nothing at this position')
    const { source, at, size } = piece
    const offset = position - at
    if (Buffer.isBuffer(source)) return source.subarray(offset)
    return readStoredBytes(this.#bytes, source.from + offset, size - offset)
  }
}

/** A part of a form, given by its offsets, and what replaces its content. */
export interface Replacement {
  readonly part: Pick<FormPart, 'start' | 'end'>
  readonly text: string | Buffer
}

interface Piece {
  readonly at: number
  readonly size: number
  readonly source: Buffer | { readonly from: number }
}

/** Reads bytes of a body. From disk, at most one piece is read. Rejects if the bytes do not exist. */
export async function readStoredBytes(bytes: StoredBytes, from: number, length: number): Promise<Buffer> {
  if (Buffer.isBuffer(bytes)) return bytes.subarray(from, from + length)
  const read = await bytes.read(from, Math.min(length, PIECE_BYTES))
  if (read.length === 0) throw new RangeError('the stored body is shorter than it was')
  return read
}
