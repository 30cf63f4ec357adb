import { randomBytes } from 'node:crypto'

/**
 * Number of texts generated in advance: requesting random bytes from the system costs more than encoding
 * them.
 */
const TEXTS_AHEAD = 128

/** Random bits per character of each alphabet. */
const BITS = { hex: 4, base64url: 6 } as const

/** Random texts that cannot be guessed. */
export class RandomText {
  readonly #alphabet: keyof typeof BITS
  readonly #bytes: number
  /** Characters generated in advance. */
  #ahead = ''
  #at = 0

  /** `maxLength`: maximum length of a text in characters. */
  constructor(alphabet: keyof typeof BITS, maxLength: number) {
    this.#alphabet = alphabet
    // In each alphabet, groups of three bytes make a whole number of characters.
    this.#bytes = 3 * Math.ceil((maxLength * TEXTS_AHEAD * BITS[alphabet]) / 24)
  }

  /** Returns a text of `length` characters; no part of it is used again. */
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
