/** Bytes before the number of an event, in streams that number theirs. */
const MARK = ',"sequence_number":'
/** Up to so many bytes a loop compares faster than a call does. */
const MAX_LOOP_BYTES = 16

/**
 * Bytes that frames of one kind share, with any event number in them. The mark cannot stand in a string of
 * JSON, as its quotes would be escaped there.
 */
export class NumberedBytes {
  readonly #before: Buffer
  /** The bytes behind the number; undefined where there is none. */
  readonly #after: Buffer | undefined
  /** The bytes, where there is no number in them. */
  readonly plain: Buffer | undefined

  constructor(bytes: Buffer) {
    const mark = bytes.indexOf(MARK)
    const from = mark + MARK.length
    const to = mark < 0 ? from : endOfDigits(bytes, from)
    const hasNumber = mark >= 0 && to > from
    this.#before = hasNumber ? bytes.subarray(0, from) : bytes
    this.#after = hasNumber ? bytes.subarray(to) : undefined
    this.plain = hasNumber ? undefined : bytes
  }

  /** The offset after these bytes, if they are what stands at `from`; else −1. */
  endIn(bytes: Buffer, from: number): number {
    const end = endOf(bytes, from, this.#before)
    if (!this.#after || end < 0) return end
    const digits = endOfDigits(bytes, end)
    return digits > end ? endOf(bytes, digits, this.#after) : -1
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

function endOfDigits(bytes: Buffer, from: number): number {
  let at = from
  while (isDigit(bytes[at])) at++
  return at
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39
}
