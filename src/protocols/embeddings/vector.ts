/** Bytes of a number in a base64 vector: IEEE 754 single precision, little-endian. */
const BYTES = 4

/** Digits after which every single-precision number reads as itself. */
const MAX_DIGITS = 9

/** A vector as base64 of its numbers in single precision. */
export function toBase64(numbers: readonly number[]): string {
  const bytes = Buffer.allocUnsafe(numbers.length * BYTES)
  for (const [index, value] of numbers.entries()) bytes.writeFloatLE(value, index * BYTES)
  return bytes.toString('base64')
}

/** JSON text of the numbers of a base64 vector; undefined if it holds none, or one that JSON cannot have. */
export function toNumbers(base64: string): string | undefined {
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.length === 0 || bytes.length % BYTES !== 0) return undefined
  const texts: string[] = []
  for (let at = 0; at < bytes.length; at += BYTES) {
    const value = bytes.readFloatLE(at)
    if (!Number.isFinite(value)) return undefined
    texts.push(shortest(value))
  }
  return `[${texts.join(',')}]`
}

/** Powers of ten up to the largest one that a double holds exactly. */
const POWERS = Array.from({ length: 23 }, (_, exponent) => 10 ** exponent)
const MIN_DIGITS = 7

/** The text with the fewest digits from seven on that is the same number in single precision. */
function shortest(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const exponent = Math.floor(Math.log10(Math.abs(value)))
  for (let digits = MIN_DIGITS; digits <= MAX_DIGITS; digits++) {
    const power = POWERS[digits - 1 - exponent]
    if (power === undefined) break
    // The double nearest to a decimal of so few digits, whose text is that decimal.
    const rounded = Math.round(value * power) / power
    if (Math.fround(rounded) === value) return String(rounded)
  }
  return String(Number(value.toPrecision(MAX_DIGITS)))
}
