/** Maximum bytes of a single-precision number as text. */
export const MAX_TEXT_BYTES = 22

const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30

/**
 * Minimum number of digits that are tried, and the number of digits with which every value reads back
 * exactly.
 */
const MIN_DIGITS = 7
const MAX_DIGITS = 9

/** Range of the numbers whose digits are written here; nearly all numbers of a vector are in it. */
const PLAIN_FROM = 1e-6
const PLAIN_BELOW = 1e7

/** Powers of ten up to the largest one that a double holds exactly. */
const POWERS = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`))
/** Limits of the numbers below one, by the position of their first digit. */
const FRACTIONS = Float64Array.from({ length: 8 }, (_, place) => Number(`1e-${place}`))

/**
 * Writes the single-precision number in four little-endian bytes as JSON, with the fewest digits, at least
 * seven, that read back as the same number, and without trailing zeros. Returns the position after it, or -1
 * for a value that JSON cannot express. It creates no objects, because a response has millions of numbers.
 */
export function writeSingle(numbers: DataView, offset: number, out: Uint8Array, from: number): number {
  const value = numbers.getFloat32(offset, true)
  const size = Math.abs(value)
  if (!(size >= PLAIN_FROM && size < PLAIN_BELOW))
    return size < Infinity ? writeAscii(shortText(value), out, from) : -1
  let at = from
  if (value < 0) out[at++] = MINUS
  let decimals = MIN_DIGITS - 1 - exponentOf(size)
  let digits = digitsOf(size, decimals)
  for (let more = MAX_DIGITS - MIN_DIGITS; more > 0 && !isSame(digits, decimals, size); more--)
    digits = digitsOf(size, ++decimals)
  while (decimals > 0 && digits % 10 === 0) {
    digits = (digits / 10) | 0
    decimals--
  }
  const whole = Math.trunc(digits / (POWERS[decimals] as number)) | 0
  at = writeInteger(whole, out, at)
  if (decimals === 0) return at
  out[at++] = POINT
  let rest = (digits - whole * (POWERS[decimals] as number)) | 0
  for (let place = at + decimals - 1; place >= at; place--) {
    const tenth = (rest / 10) | 0
    out[place] = ZERO + rest - tenth * 10
    rest = tenth
  }
  return at + decimals
}

/** The power of ten of the first digit. */
function exponentOf(size: number): number {
  if (size >= 1) {
    let exponent = 0
    while (size >= (POWERS[exponent + 1] as number)) exponent++
    return exponent
  }
  let place = 1
  while (size < (FRACTIONS[place] as number)) place++
  return -place
}

/** The number with this many decimals, as an integer. */
function digitsOf(size: number, decimals: number): number {
  return Math.round(size * (POWERS[decimals] as number)) | 0
}

/** Reports whether this decimal number reads back as the same single-precision number. */
function isSame(digits: number, decimals: number, size: number): boolean {
  return Math.fround(digits / (POWERS[decimals] as number)) === size
}

function writeInteger(value: number, out: Uint8Array, from: number): number {
  let length = 1
  while (value >= (POWERS[length] as number)) length++
  let rest = value
  for (let place = from + length - 1; place >= from; place--) {
    const tenth = (rest / 10) | 0
    out[place] = ZERO + rest - tenth * 10
    rest = tenth
  }
  return from + length
}

function writeAscii(text: string, out: Uint8Array, at: number): number {
  for (let i = 0; i < text.length; i++) out[at + i] = text.charCodeAt(i)
  return at + text.length
}

/** The text of a number that is very small, very large or zero. */
function shortText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const exponent = Math.floor(Math.log10(Math.abs(value)))
  for (let digits = MIN_DIGITS; digits <= MAX_DIGITS; digits++) {
    const power = POWERS[digits - 1 - exponent]
    if (power === undefined) break
    const rounded = Math.round(value * power) / power
    if (Math.fround(rounded) === value) return String(rounded)
  }
  return String(Number(value.toPrecision(MAX_DIGITS)))
}
