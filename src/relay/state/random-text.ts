import { randomFillSync } from 'node:crypto'

/** Texts that are made ahead at a time: asking the system for bytes costs more than encoding them. */
const TEXTS_AHEAD = 128

/** Random bits of a character in each alphabet. */
const BITS = { hex: 4, base64url: 6 } as const

/** Random texts that nobody can guess. */
export class RandomText {
  readonly #pool: Buffer
  #at: number

  /** `maxBytes`: random bytes of the longest text. */
  constructor(maxBytes: number) {
    this.#pool = Buffer.allocUnsafeSlow(maxBytes * TEXTS_AHEAD)
    this.#at = this.#pool.length
  }

  /** The next text, of `length` characters of that alphabet; no part of it is used again. */
  next(length: number, alphabet: keyof typeof BITS): string {
    const size = Math.ceil((length * BITS[alphabet]) / 8)
    if (this.#at + size > this.#pool.length) {
      randomFillSync(this.#pool)
      this.#at = 0
    }
    const text = this.#pool.toString(alphabet, this.#at, this.#at + size)
    this.#at += size
    return text.length === length ? text : text.slice(0, length)
  }
}
