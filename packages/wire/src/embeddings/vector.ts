import { readNumbers } from './number-list.ts'
import { MAX_TEXT_BYTES, writeSingle } from './single-text.ts'

/** Bytes of a number in a base64 vector: IEEE 754 single precision, little-endian. */
const BYTES = 4

/**
 * Buffers for the longest common vectors; the system provides memory only for the parts that are used. A
 * longer vector gets memory of its own.
 */
const SINGLES = Buffer.allocUnsafeSlow(1_048_576)
const TEXT = Buffer.allocUnsafeSlow(1_179_648)

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN = 0x5b
const CLOSE = 0x5d

/**
 * Converts a JSON list of numbers to quoted base64 of single-precision numbers; undefined if it is not such a
 * list.
 */
export function toBase64(list: Buffer): Buffer | undefined {
  // A number and the comma after it take at least two bytes.
  const singles = roomFor((list.length >> 1) * BYTES, SINGLES)
  const count = readNumbers(list, new DataView(singles.buffer))
  if (count === undefined) return undefined
  const text = singles.toString('base64', 0, count * BYTES)
  const quoted = Buffer.allocUnsafe(text.length + 2)
  quoted[0] = QUOTE
  quoted.write(text, 1, 'latin1')
  quoted[text.length + 1] = QUOTE
  return quoted
}

/**
 * Converts a quoted base64 vector to a JSON list of numbers; undefined if it contains none, or one that JSON
 * cannot express.
 */
export function toNumbers(quoted: Buffer): Buffer | undefined {
  const singles = roomFor(quoted.length, SINGLES)
  const length = singles.write(quoted.toString('latin1', 1, quoted.length - 1), 'base64')
  if (length === 0 || length % BYTES !== 0) return undefined
  const numbers = new DataView(singles.buffer)
  const text = roomFor((length / BYTES) * (MAX_TEXT_BYTES + 1) + 2, TEXT)
  text[0] = OPEN
  let end = 1
  for (let at = 0; at < length; at += BYTES) {
    end = writeSingle(numbers, at, text, end)
    if (end < 0) return undefined
    text[end++] = COMMA
  }
  // Replaces the last comma.
  text[end - 1] = CLOSE
  return Buffer.from(text.subarray(0, end))
}

function roomFor(bytes: number, scratch: Buffer): Buffer {
  return bytes <= scratch.length ? scratch : Buffer.allocUnsafeSlow(bytes)
}
