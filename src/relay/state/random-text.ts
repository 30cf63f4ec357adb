import { randomFillSync } from 'node:crypto'

/** Texts that are made ahead at a time: asking the system for bytes costs more than encoding them. */
const TEXTS_AHEAD = 128
/** Random bits of a character. */
const BITS = 6

/** Random texts that nobody can guess, of the characters of base64url. */
export class RandomText {
  readonly #pool: Buffer
  #at: number

  /** `maxLength`: characters of the longest text. */
  constructor(maxLength: number) {
    this.#pool = Buffer.allocUnsafeSlow(bytesFor(maxLength) * TEXTS_AHEAD)
    this.#at = this.#pool.length
  }

  /** The next text, of `length` characters; no part of it is used again. */
  next(length: number): string {
    const size = bytesFor(length)
    if (this.#at + size > this.#pool.length) {
      randomFillSync(this.#pool)
      this.#at = 0
    }
    const text = this.#pool.toString('base64url', this.#at, this.#at + size)
    this.#at += size
    return text.length === length ? text : text.slice(0, length)
  }
}

function bytesFor(length: number): number {
  return Math.ceil((length * BITS) / 8)
}
