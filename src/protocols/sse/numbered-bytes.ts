import { BytePattern } from './byte-pattern.ts'

/**
 * Numbers that differ between the frames of one kind: those of the events, and counts of tokens so far. Their
 * marks cannot stand in a string of JSON, as its quotes would be escaped there.
 */
const NUMBERS = /(?:,"sequence_number":|[Tt]okenCount":) ?(?=\d)/g

/**
 * Bytes that frames of one kind share, with any such numbers in them. Numbers that stay the same from frame
 * to frame are compared with the bytes around them, since one long comparison is cheaper than two short ones.
 */
export class NumberedBytes {
  /** The bytes between the numbers. */
  readonly #pieces: readonly BytePattern[]
  /** Length with numbers of one digit. */
  readonly #minLength: number
  /** The bytes, where there is no number in them. */
  readonly plain: Buffer | undefined
  /** The bytes between the numbers that have changed, with those that have not. */
  #steady: readonly BytePattern[]
  /** Texts of the numbers that have not changed; undefined for others. */
  readonly #numbers: (Buffer | undefined)[]

  constructor(bytes: Buffer) {
    const pieces: BytePattern[] = []
    const numbers: (Buffer | undefined)[] = []
    let from = 0
    for (const { index, 0: mark } of bytes.toString('latin1').matchAll(NUMBERS)) {
      const number = index + mark.length
      pieces.push(new BytePattern(bytes.subarray(from, number)))
      from = endOfDigits(bytes, number)
      // Nothing tells where a number at the very end ends.
      numbers.push(from === bytes.length ? undefined : bytes.subarray(number, from))
    }
    pieces.push(new BytePattern(bytes.subarray(from)))
    this.#pieces = pieces
    this.#minLength = pieces.reduce((sum, piece) => sum + piece.bytes.length, pieces.length - 1)
    this.plain = pieces.length === 1 ? bytes : undefined
    this.#numbers = numbers
    this.#steady = this.#joined()
  }

  /** The offset after these bytes, if they are what stands at `from`; else −1. */
  endIn(bytes: Buffer, from: number): number {
    if (from + this.#minLength > bytes.length) return -1
    const end = endThrough(this.#steady, bytes, from)
    if (end >= 0 || this.#steady.length === this.#pieces.length) return end
    const changed = endThrough(this.#pieces, bytes, from)
    if (changed >= 0) this.#noteChanges(bytes, from)
    return changed
  }

  /** Notes which numbers have changed in the bytes that stand at `from`. */
  #noteChanges(bytes: Buffer, from: number): void {
    let at = from
    for (const [i, known] of this.#numbers.entries()) {
      at += (this.#pieces[i] as BytePattern).bytes.length
      const end = endOfDigits(bytes, at)
      if (known?.equals(bytes.subarray(at, end)) === false) this.#numbers[i] = undefined
      at = end
    }
    this.#steady = this.#joined()
  }

  #joined(): BytePattern[] {
    const [first, ...others] = this.#pieces.map(({ bytes }) => bytes)
    const groups: Buffer[][] = [[first as Buffer]]
    for (const [i, number] of this.#numbers.entries()) {
      const next = others[i] as Buffer
      if (number) groups.at(-1)?.push(number, next)
      else groups.push([next])
    }
    return groups.map((group) => new BytePattern(Buffer.concat(group)))
  }
}

/** The offset after these pieces, with a number between each two, if they stand at `from`; else −1. */
function endThrough(pieces: readonly BytePattern[], bytes: Buffer, from: number): number {
  let end = (pieces[0] as BytePattern).endIn(bytes, from)
  for (let i = 1; i < pieces.length && end >= 0; i++) {
    const digits = endOfDigits(bytes, end)
    end = digits > end ? (pieces[i] as BytePattern).endIn(bytes, digits) : -1
  }
  return end
}

/** The offset after the digits at `from`. */
function endOfDigits(bytes: Buffer, from: number): number {
  let at = from
  while (isDigit(bytes[at])) at++
  return at
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39
}
