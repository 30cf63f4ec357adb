import { randomBytes } from 'node:crypto'
import { nativeResponseIdPrefix } from '../domain/stored-response.ts'

/**
 * Minimum and default length of ids that the gateway issues, including the prefix. Shorter ids would have too
 * few random bits.
 */
const MIN_LENGTH = 37
const USUAL_LENGTH = 49
const MAX_LENGTH = 65

/** Beginning of all ids that are issued in the current millisecond, so that it is computed once. */
const newest = { ms: 0, beginning: nativeResponseIdPrefix(0) }

/**
 * Creates an id that cannot be guessed (at least 120 random bits). It has `length` characters if possible, so
 * that it can be written over an upstream's id of that length without copying the text. It begins with the
 * time, so that new rows are adjacent and a commit of many rows writes few pages.
 */
export function newResponseId(length = USUAL_LENGTH): string {
  const size = length >= MIN_LENGTH && length <= MAX_LENGTH ? length : USUAL_LENGTH
  const nowMs = Date.now()
  if (nowMs !== newest.ms) {
    newest.ms = nowMs
    newest.beginning = nativeResponseIdPrefix(nowMs)
  }
  const random = size < USUAL_LENGTH ? CHARACTERS : DIGITS
  return newest.beginning + random.next(size - newest.beginning.length)
}

/**
 * Whether an id has the form of the gateway's ids. Ids of another form need not be looked up in the store.
 */
export function isGatewayResponseId(id: string): boolean {
  return /^resp_[\w-]{1,60}$/.test(id)
}

/**
 * Number of random texts for which bytes are requested from the system at once, because a request costs more
 * than encoding the bytes.
 */
const TEXTS_AHEAD = 128

/** Random bits per character of each alphabet. */
const BITS = { hex: 4, base64url: 6 } as const

/** Generates random texts that cannot be guessed. */
export class RandomText {
  readonly #alphabet: keyof typeof BITS
  readonly #bytes: number
  /** Characters that were generated but not used yet. */
  #ahead = ''
  #at = 0

  /** `maxLength`: maximum length of a text in characters. */
  constructor(alphabet: keyof typeof BITS, maxLength: number) {
    this.#alphabet = alphabet
    // A multiple of three bytes makes a whole number of characters, in hex as in base64url.
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

/** Random texts in ids, with at least 120 bits. */
const DIGITS = new RandomText('hex', MAX_LENGTH)
const CHARACTERS = new RandomText('base64url', USUAL_LENGTH)
