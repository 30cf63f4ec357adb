import { randomBytes } from 'node:crypto'

/** Texts that are made ahead at a time: asking the system for bytes costs more than encoding them. */
const TEXTS_AHEAD = 128

/** Random bits of a character in each alphabet. */
const BITS = { hex: 4, base64url: 6 } as const

/** Random texts that nobody can guess. */
export class RandomText {
  readonly #alphabet: keyof typeof BITS
  readonly #bytes: number
  /** Characters that are made ahead. */
  #ahead = ''
  #at = 0

  /** `maxLength`: characters of the longest text. */
  constructor(alphabet: keyof typeof BITS, maxLength: number) {
    this.#alphabet = alphabet
    // Whole groups of three bytes make whole characters in each alphabet.
    this.#bytes = 3 * Math.ceil((maxLength * TEXTS_AHEAD * BITS[alphabet]) / 24)
  }

  /** The next text, of `length` characters; no part of it is used again. */
  next(length: number): string {
    if (this.#at + length > this.#ahead.length) {
      this.#ahead = randomBytes(this.#bytes).toString(this.#alphabet)
      this.#at = 0
    }
    const text = this.#ahead.slice(this.#at, this.#at + length)
    this.#at += length
    return text
  }
}
