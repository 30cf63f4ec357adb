import { promptTokens, type Usage } from '../usage.ts'
import type { RawVector } from '../vectors.ts'
import type { VectorForm } from './request.ts'

/**
 * Converts a vector to the wanted format. Returns it unchanged if it has that format already or contains no
 * valid numbers.
 */
export function convertVector({ form, text }: RawVector, wanted: VectorForm): Buffer {
  if (wanted === undefined || wanted === form) return text
  return (wanted === 'base64' ? toBase64(text) : toNumbers(text)) ?? text
}

/** Writes a response one vector at a time, in the format that the client requested. */
export class VectorsWriter {
  readonly #form: VectorForm
  readonly #model: string
  #count = 0

  constructor(form: VectorForm, model: string) {
    this.#form = form
    this.#model = model
  }

  /** Returns the next piece of the response, with this vector. */
  write(vector: RawVector): Buffer {
    const index = this.#count++
    const before = index === 0 ? '{"object":"list","data":[' : ','
    return Buffer.concat([
      Buffer.from(`${before}{"object":"embedding","index":${index},"embedding":`),
      convertVector(vector, this.#form),
      END_OF_VECTOR,
    ])
  }

  /** Returns the last piece of the response. */
  end(charged: Usage): Buffer {
    const tokens = promptTokens(charged)
    const usage = JSON.stringify({ prompt_tokens: tokens, total_tokens: tokens })
    return Buffer.from(`],"model":${JSON.stringify(this.#model)},"usage":${usage}}`)
  }
}

const END_OF_VECTOR = Buffer.from('}')

/** Number of bytes of one number in a base64 vector (IEEE 754 single precision, little-endian). */
const BYTES = 4

/**
 * Buffers large enough for all common vectors. The operating system provides memory only for the parts that
 * are used. A longer vector gets a separate buffer.
 */
const SINGLES = Buffer.allocUnsafeSlow(1_048_576)
const TEXT = Buffer.allocUnsafeSlow(1_179_648)

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN = 0x5b
const CLOSE = 0x5d

/**
 * Converts a JSON list of numbers to base64 of single-precision numbers, in quotes; undefined if this is not
 * a list of numbers.
 */
export function toBase64(list: Buffer): Buffer | undefined {
  // A number with the comma after it takes at least two bytes.
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
 * Converts a base64 vector in quotes to a JSON list of numbers; undefined if it contains no numbers, or one
 * that JSON cannot express.
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
  // Replaces the comma after the last number.
  text[end - 1] = CLOSE
  return Buffer.from(text.subarray(0, end))
}

function roomFor(bytes: number, scratch: Buffer): Buffer {
  return bytes <= scratch.length ? scratch : Buffer.allocUnsafeSlow(bytes)
}

const MINUS = 0x2d
const PLUS = 0x2b
const POINT = 0x2e
const ZERO = 0x30
const SMALL_E = 0x65
const LARGE_E = 0x45
const SPACE = 0x20

/** Returned instead of a position by functions that read a number, if there is no valid number. */
const NONE = -1
/**
 * Powers of ten (by exponent), the highest exponent in the list, and the highest exponent whose power a
 * double holds exactly.
 */
const POWERS = Float64Array.from({ length: 50 }, (_, exponent) => Number(`1e${exponent}`))
const MAX_POWER = POWERS.length - 1
const MAX_EXACT_POWER = 22
/**
 * Maximum number of characters of a number that is read quickly: up to this length, the rounding error of the
 * sum of its digits is below `MARGIN`. Longer numbers are read by `Number`.
 */
const MAX_CHARACTERS = 32
/**
 * Upper bound of the relative rounding error of a number, as a factor. It is far more than twice the error of
 * 15 roundings of a double.
 */
const MARGIN = 2 ** -46

/**
 * Converts a JSON list of numbers to single precision, little-endian. Returns the number of numbers;
 * undefined if this is not a list of numbers. The results equal those of `JSON.parse`, but no objects are
 * created, because a response has millions of numbers. `out` must have room for one number per two bytes of
 * `list`, which must end with its only closing bracket.
 */
function readNumbers(list: Buffer, out: DataView): number | undefined {
  let at = afterSpace(list, 1)
  if (list[at] === CLOSE) return 0
  for (let count = 0; ; ) {
    at = readNumber(list, at, out, count++ * BYTES)
    if (at === NONE) return undefined
    at = afterSpace(list, at)
    if (list[at] === CLOSE) return count
    if (list[at] !== COMMA) return undefined
    at = afterSpace(list, at + 1)
  }
}

/**
 * Reads a number and writes it to `out`. Returns the position after it; −1 (`NONE`) if there is no valid
 * number.
 */
function readNumber(list: Buffer, start: number, out: DataView, offset: number): number {
  let at = start
  const sign = list[at] === MINUS ? -1 : 1
  if (sign < 0) at++
  let digit = (list[at] as number) - ZERO
  if (!(digit >= 0 && digit <= 9)) return NONE
  let digits = digit
  // A leading zero must not be followed by a digit.
  for (digit = (list[++at] as number) - ZERO; digits !== 0 && digit >= 0 && digit <= 9; ) {
    digits = digits * 10 + digit
    digit = (list[++at] as number) - ZERO
  }
  let exponent = 0
  if (list[at] === POINT) {
    const first = ++at
    for (digit = (list[at] as number) - ZERO; digit >= 0 && digit <= 9; ) {
      digits = digits * 10 + digit
      digit = (list[++at] as number) - ZERO
    }
    if (at === first) return NONE
    exponent = first - at
  }
  if (list[at] === SMALL_E || list[at] === LARGE_E) {
    at++
    const isFraction = list[at] === MINUS
    if (isFraction || list[at] === PLUS) at++
    const first = at
    let stated = 0
    for (digit = (list[at] as number) - ZERO; digit >= 0 && digit <= 9; ) {
      stated = Math.min(stated * 10 + digit, 10_000)
      digit = (list[++at] as number) - ZERO
    }
    if (at === first) return NONE
    exponent += isFraction ? -stated : stated
  }
  const power = Math.abs(exponent)
  if (power > MAX_POWER || at - start > MAX_CHARACTERS) return readSlowly(list, start, at, out, offset)
  const size = exponent < 0 ? digits / (POWERS[power] as number) : digits * (POWERS[power] as number)
  // If both factors are exact, `size` is the double nearest to the text. Otherwise the result is used only if
  // all doubles within the margin round to the same single-precision number; if not, the text is parsed by
  // `Number`, which is slower.
  const isExact = digits <= Number.MAX_SAFE_INTEGER && power <= MAX_EXACT_POWER
  if (!isExact && Math.fround(size * (1 - MARGIN)) !== Math.fround(size * (1 + MARGIN)))
    return readSlowly(list, start, at, out, offset)
  out.setFloat32(offset, size * sign, true)
  return at
}

function readSlowly(list: Buffer, start: number, end: number, out: DataView, offset: number): number {
  out.setFloat32(offset, Number(list.toString('latin1', start, end)), true)
  return end
}

function afterSpace(list: Buffer, from: number): number {
  let at = from
  for (let byte = list[at] as number; byte <= SPACE; byte = list[at] as number) {
    if (byte !== SPACE && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break
    at++
  }
  return at
}

/** Maximum number of bytes of a single-precision number as text. */
const MAX_TEXT_BYTES = 22

/**
 * Number of significant digits that is tried first, and the number that is always enough to read the same
 * value back.
 */
const MIN_DIGITS = 7
const MAX_DIGITS = 9

/**
 * Smallest absolute value of the range in which numbers are written without creating a string. Nearly all
 * numbers of vectors are in this range.
 */
const PLAIN_FROM = 1e-6
const PLAIN_BELOW = 1e7

/** Powers of ten, by exponent, up to the highest one that a double holds exactly. */
const EXACT_POWERS = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`))
/** Powers 10^0 to 10^-7, by which the first digit of a number below one is found. */
const FRACTIONS = Float64Array.from({ length: 8 }, (_, place) => Number(`1e-${place}`))

/**
 * Writes a single-precision number (four bytes, little-endian) as JSON: with the fewest digits from which the
 * same number is read back, but at least seven, and without trailing zeros. Returns the position after it; −1
 * if JSON cannot express the number. Creates no objects, because a response has millions of numbers.
 */
function writeSingle(numbers: DataView, offset: number, out: Uint8Array, from: number): number {
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
  const whole = Math.trunc(digits / (EXACT_POWERS[decimals] as number)) | 0
  at = writeInteger(whole, out, at)
  if (decimals === 0) return at
  out[at++] = POINT
  let rest = (digits - whole * (EXACT_POWERS[decimals] as number)) | 0
  for (let place = at + decimals - 1; place >= at; place--) {
    const tenth = (rest / 10) | 0
    out[place] = ZERO + rest - tenth * 10
    rest = tenth
  }
  return at + decimals
}

/** Exponent of a positive number in scientific notation: 2 for 123, -2 for 0.0123. */
function exponentOf(size: number): number {
  if (size >= 1) {
    let exponent = 0
    while (size >= (EXACT_POWERS[exponent + 1] as number)) exponent++
    return exponent
  }
  let place = 1
  while (size < (FRACTIONS[place] as number)) place++
  return -place
}

/** Multiplies a number by 10 to the power of `decimals`, and rounds it: 0.123 with 2 decimals gives 12. */
function digitsOf(size: number, decimals: number): number {
  return Math.round(size * (EXACT_POWERS[decimals] as number)) | 0
}

/** Whether the same single-precision number is read back from this decimal number. */
function isSame(digits: number, decimals: number, size: number): boolean {
  return Math.fround(digits / (EXACT_POWERS[decimals] as number)) === size
}

function writeInteger(value: number, out: Uint8Array, from: number): number {
  let length = 1
  while (value >= (EXACT_POWERS[length] as number)) length++
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

/** Text of a number that is zero, very small or very large. */
function shortText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const exponent = Math.floor(Math.log10(Math.abs(value)))
  for (let digits = MIN_DIGITS; digits <= MAX_DIGITS; digits++) {
    const power = EXACT_POWERS[digits - 1 - exponent]
    if (power === undefined) break
    const rounded = Math.round(value * power) / power
    if (Math.fround(rounded) === value) return String(rounded)
  }
  return String(Number(value.toPrecision(MAX_DIGITS)))
}
