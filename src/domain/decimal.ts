import { withoutTrailing } from './without-trailing.ts'

/** An exact decimal number: `digits` × 10^−`scale`. */
export interface Decimal {
  readonly digits: bigint
  readonly scale: number
}

/** The number 0, the price of something free. */
export const ZERO: Decimal = { digits: 0n, scale: 0 }

/** The number 1. */
export const ONE: Decimal = { digits: 1n, scale: 0 }

/** Powers of ten that are often needed for sums of prices, computed once. */
const POWERS = Array.from({ length: 24 }, (_, places) => 10n ** BigInt(places))

/** Maximum number of digits of a decimal, written without an exponent: the time to read them grows faster than their number. */
const MAX_DIGITS = 2_000
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/i

/**
 * Parses a decimal exactly: `0.1` is one tenth. A number is converted to its shortest decimal notation first.
 * Undefined if the text is not a decimal, or has more than 2,000 digits.
 */
export function parseDecimal(source: string | number): Decimal | undefined {
  const match = DECIMAL.exec(String(source).trim())
  if (!match) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  if (whole.length + fraction.length + Math.abs(Number(exponent)) > MAX_DIGITS) return undefined
  const scale = fraction.length - Number(exponent)
  const digits = BigInt(`${sign}${whole}${fraction}`)
  return scale >= 0 ? { digits, scale } : { digits: digits * 10n ** BigInt(-scale), scale: 0 }
}

/** The exact product of two decimals. */
export function multiply(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, scale: a.scale + b.scale }
}

/** An exact sum of decimals, to which values are added in place. */
export class Sum implements Decimal {
  digits = 0n
  scale = 0

  add({ digits, scale }: Decimal): void {
    if (digits === 0n) return
    if (scale > this.scale) {
      this.digits *= powerOfTen(scale - this.scale)
      this.scale = scale
    }
    this.digits += scale < this.scale ? digits * powerOfTen(this.scale - scale) : digits
  }

  /** Sets the sum to `value` if that is larger. */
  raiseTo(value: Decimal): void {
    if (!isGreaterDecimal(value, this)) return
    this.digits = value.digits
    this.scale = value.scale
  }
}

/** Whether the first decimal is larger than the second. */
export function isGreaterDecimal(one: Decimal, other: Decimal): boolean {
  const scale = Math.max(one.scale, other.scale)
  return toScaledInteger(one, scale) > toScaledInteger(other, scale)
}

/**
 * The value as a whole number of units of 10^−`scale`. Throws if `value` has more decimal places than
 * `scale`.
 */
export function toScaledInteger(value: Decimal, scale: number): bigint {
  if (scale < value.scale) throw new RangeError('a decimal cannot be written with fewer places than it has')
  return value.digits * powerOfTen(scale - value.scale)
}

/** 10 to the power of `places`. */
export function powerOfTen(places: number): bigint {
  return POWERS[places] ?? 10n ** BigInt(places)
}

/** The quotient, rounded half away from zero to `places` decimal places. `b` must not be zero. */
export function divide(a: Decimal, b: Decimal, places: number): Decimal {
  const numerator = a.digits * 10n ** BigInt(places + b.scale)
  const denominator = b.digits * 10n ** BigInt(a.scale)
  const negative = numerator < 0n !== denominator < 0n
  const [top, bottom] = [magnitude(numerator), magnitude(denominator)]
  const digits = (2n * top + bottom) / (2n * bottom)
  return { digits: negative ? -digits : digits, scale: places }
}

/** The shortest notation of a decimal: `0.3`, `15`. */
export function decimalText({ digits, scale }: Decimal): string {
  const text = magnitude(digits)
    .toString()
    .padStart(scale + 1, '0')
  const whole = text.slice(0, text.length - scale)
  const fraction = scale === 0 ? '' : withoutTrailing(text.slice(-scale), '0')
  return `${digits < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}

function magnitude(value: bigint): bigint {
  return value < 0n ? -value : value
}
