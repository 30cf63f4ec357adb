/**
 * Numbers that differ between the frames of one kind: those of the events, and counts of tokens so far. Their
 * marks cannot stand in a string of JSON, as its quotes would be escaped there.
 */
const NUMBERS = /(?:,"sequence_number":|[Tt]okenCount":) ?(?=\d)/g
/** Up to so many bytes a loop compares faster than a call does. */
const MAX_LOOP_BYTES = 32

/**
 * Bytes that frames of one kind share, with any such numbers in them. Numbers that stay the same from frame
 * to frame are compared with the bytes around them, since one long comparison is cheaper than two short ones.
 */
export class NumberedBytes {
  /** The bytes between the numbers. */
  readonly pieces: readonly Buffer[]
  /** Length with numbers of one digit. */
  readonly #minLength: number
  /** The bytes, where there is no number in them. */
  readonly plain: Buffer | undefined
  /** The bytes between the numbers that have changed, with those that have not. */
  #steady: readonly Buffer[]
  /** Texts of the numbers that have not changed; undefined for others. */
  readonly #numbers: (Buffer | undefined)[]

  constructor(bytes: Buffer) {
    const pieces: Buffer[] = []
    const numbers: (Buffer | undefined)[] = []
    let from = 0
    for (const { index, 0: mark } of bytes.toString('latin1').matchAll(NUMBERS)) {
      const number = index + mark.length
      pieces.push(bytes.subarray(from, number))
      from = endOfDigits(bytes, number)
      // Nothing tells where a number at the very end ends.
      numbers.push(from === bytes.length ? undefined : bytes.subarray(number, from))
    }
    pieces.push(bytes.subarray(from))
    this.pieces = pieces
    this.#minLength = pieces.reduce((sum, { length }) => sum + length, pieces.length - 1)
    this.plain = pieces.length === 1 ? bytes : undefined
    this.#numbers = numbers
    this.#steady = this.#joined()
  }

  /** The offset after these bytes, if they are what stands at `from`; else −1. */
  endIn(bytes: Buffer, from: number): number {
    if (from + this.#minLength > bytes.length) return -1
    const end = endThrough(this.#steady, bytes, from)
    if (end >= 0 || this.#steady.length === this.pieces.length) return end
    const changed = endThrough(this.pieces, bytes, from)
    if (changed >= 0) this.#noteChanges(bytes, from)
    return changed
  }

  /** Notes which numbers have changed in the bytes that stand at `from`. */
  #noteChanges(bytes: Buffer, from: number): void {
    let at = from
    for (const [i, known] of this.#numbers.entries()) {
      at += (this.pieces[i] as Buffer).length
      const end = endOfDigits(bytes, at)
      if (known?.equals(bytes.subarray(at, end)) === false) this.#numbers[i] = undefined
      at = end
    }
    this.#steady = this.#joined()
  }

  #joined(): Buffer[] {
    const groups: Buffer[][] = [[this.pieces[0] as Buffer]]
    for (const [i, number] of this.#numbers.entries()) {
      const next = this.pieces[i + 1] as Buffer
      if (number) groups.at(-1)?.push(number, next)
      else groups.push([next])
    }
    return groups.map((group) => (group.length === 1 ? (group[0] as Buffer) : Buffer.concat(group)))
  }
}

/** The offset after these pieces, with a number between each two, if they stand at `from`; else −1. */
function endThrough(pieces: readonly Buffer[], bytes: Buffer, from: number): number {
  let end = endOf(bytes, from, pieces[0] as Buffer)
  for (let i = 1; i < pieces.length && end >= 0; i++) {
    const digits = endOfDigits(bytes, end)
    end = digits > end ? endOf(bytes, digits, pieces[i] as Buffer) : -1
  }
  return end
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
