/**
 * Numbers that differ between the frames of one kind: those of the events, and counts of tokens so far. Their
 * marks cannot stand in a string of JSON, as its quotes would be escaped there.
 */
const NUMBERS = /(?:,"sequence_number":|[Tt]okenCount":) ?(?=\d)/g
/** Up to so many bytes a loop compares faster than a call does. */
const MAX_LOOP_BYTES = 32

/** Bytes that frames of one kind share, with any such numbers in them. */
export class NumberedBytes {
  /** The bytes between the numbers. */
  readonly pieces: readonly Buffer[]
  /** Length with numbers of one digit. */
  readonly #minLength: number
  /** The bytes, where there is no number in them. */
  readonly plain: Buffer | undefined

  constructor(bytes: Buffer) {
    const pieces: Buffer[] = []
    let from = 0
    for (const { index, 0: mark } of bytes.toString('latin1').matchAll(NUMBERS)) {
      const number = index + mark.length
      pieces.push(bytes.subarray(from, number))
      from = endOfDigits(bytes, number)
    }
    pieces.push(bytes.subarray(from))
    this.pieces = pieces
    this.#minLength = pieces.reduce((sum, { length }) => sum + length, pieces.length - 1)
    this.plain = pieces.length === 1 ? bytes : undefined
  }

  /** The offset after these bytes, if they are what stands at `from`; else −1. */
  endIn(bytes: Buffer, from: number): number {
    if (from + this.#minLength > bytes.length) return -1
    const { pieces } = this
    let end = endOf(bytes, from, pieces[0] as Buffer)
    for (let i = 1; i < pieces.length && end >= 0; i++) {
      const digits = endOfDigits(bytes, end)
      end = digits > end ? endOf(bytes, digits, pieces[i] as Buffer) : -1
    }
    return end
  }
}

/** The offset after `expected`, if it is what stands at `from`; else −1. */
export function endOf(bytes: Buffer, from: number, expected: Buffer): number {
  const size = expected.length
  const end = from + size
  if (end > bytes.length) return -1
  if (size > MAX_LOOP_BYTES) return bytes.compare(expected, 0, size, from, end) === 0 ? end : -1
  for (let i = 0; i < size; i++) if (bytes[from + i] !== expected[i]) return -1
  return end
}

/** The offset after the digits at `from`. */
export function endOfDigits(bytes: Buffer, from: number): number {
  let at = from
  while (isDigit(bytes[at])) at++
  return at
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39
}
