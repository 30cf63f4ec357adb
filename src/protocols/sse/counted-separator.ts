import { BytePattern } from './byte-pattern.ts'
import { endOfDigits, type NumberedBytes } from './numbered-bytes.ts'

const NINE = 0x39
const ZERO = 0x30

/**
 * Bytes between the texts of two numbered frames in a row, with the number that the second one should have:
 * one comparison then does for the end of the one and the beginning of the other.
 */
export class CountedSeparator {
  readonly #pattern: BytePattern
  readonly #bytes: Buffer
  readonly #from: number
  readonly #to: number

  /** `from` and `to`: offsets of the digits of the number in `bytes`, which become its own. */
  constructor(bytes: Buffer, from: number, to: number) {
    this.#pattern = new BytePattern(bytes)
    this.#bytes = bytes
    this.#from = from
    this.#to = to
  }

  get length(): number {
    return this.#bytes.length
  }

  /** Whether these bytes stand at `at`. */
  stands(bytes: Buffer, at: number): boolean {
    return this.#pattern.endIn(bytes, at) > 0
  }

  /** Counts the number up; false where that needs a further digit. */
  countUp(): boolean {
    for (let i = this.#to - 1; i >= this.#from; i--) {
      const digit = this.#bytes[i] as number
      if (digit < NINE) {
        this.#bytes[i] = digit + 1
        return true
      }
      this.#bytes[i] = ZERO
    }
    return false
  }
}

/**
 * The separator of frames that end with `tail` and begin with `head`, as it should come after the frame that
 * follows the one at `start`; undefined unless the head has exactly one number.
 */
export function separatorAfter(
  bytes: Buffer,
  start: number,
  { head, tail }: { readonly head: NumberedBytes; readonly tail: Buffer },
): CountedSeparator | undefined {
  const [before, after, ...others] = head.pieces
  if (!before || !after || others.length > 0) return undefined
  const from = start + before.bytes.length
  const digits = bytes.subarray(from, endOfDigits(bytes, from))
  const at = tail.length + before.bytes.length
  const joined = Buffer.concat([tail, before.bytes, digits, after.bytes])
  const separator = new CountedSeparator(joined, at, at + digits.length)
  return separator.countUp() && separator.countUp() ? separator : undefined
}
