import { BytePattern } from './byte-pattern.ts'

/**
 * Numbers that differ between the frames of one kind: sequence numbers of events and counts of tokens. These
 * names cannot occur inside a JSON string, where their quotes would be escaped.
 */
const NUMBERS = /(?:,"sequence_number":|[Tt]okenCount":) ?(?=\d)/g

/** Bytes that frames of one kind share, except for the numbers in them. */
export class NumberedBytes {
  /** Bytes between the numbers. */
  readonly #pieces: readonly BytePattern[]
  /** Length if every number has one digit. */
  readonly #minLength: number
  /** The bytes, if they contain no number. */
  readonly plain: Buffer | undefined

  constructor(bytes: Buffer) {
    const pieces: BytePattern[] = []
    let from = 0
    for (const { index, 0: mark } of bytes.toString('latin1').matchAll(NUMBERS)) {
      const number = index + mark.length
      pieces.push(new BytePattern(bytes.subarray(from, number)))
      from = endOfDigits(bytes, number)
    }
    pieces.push(new BytePattern(bytes.subarray(from)))
    this.#pieces = pieces
    this.#minLength = pieces.reduce((sum, piece) => sum + piece.bytes.length, pieces.length - 1)
    this.plain = pieces.length === 1 ? bytes : undefined
  }

  /** Returns the offset after these bytes if they stand at `from`; otherwise −1. */
  endIn(bytes: Buffer, from: number): number {
    if (from + this.#minLength > bytes.length) return -1
    let end = (this.#pieces[0] as BytePattern).endIn(bytes, from)
    for (let i = 1; i < this.#pieces.length && end >= 0; i++) {
      const digits = endOfDigits(bytes, end)
      end = digits > end ? (this.#pieces[i] as BytePattern).endIn(bytes, digits) : -1
    }
    return end
  }
}

/** Returns the offset after the digits at `from`. */
function endOfDigits(bytes: Buffer, from: number): number {
  let at = from
  while (isDigit(bytes[at])) at++
  return at
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39
}
