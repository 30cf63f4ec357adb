/** An exact decimal number: `digits` × 10^−`scale`. */
export interface Decimal {
  readonly digits: bigint
  readonly scale: number
}

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/i

/**
 * Reads a decimal as it is written: `0.1` is one tenth, not the binary fraction next to it. Numbers are taken by their
 * shortest decimal form. Returns undefined for anything else.
 */
export function parseDecimal(source: string | number): Decimal | undefined {
  const match = DECIMAL.exec(String(source).trim())
  if (!match) return undefined
  const [, sign, whole, fraction = '', exponent = '0'] = match
  const scale = fraction.length - Number(exponent)
  const digits = BigInt(`${sign}${whole}${fraction}`)
  return scale >= 0 ? { digits, scale } : { digits: digits * 10n ** BigInt(-scale), scale: 0 }
}

/** The product, exactly. */
export function multiply(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, scale: a.scale + b.scale }
}

/** `value` counted in units of 10^−`scale`; `scale` may not be less than the value's own. */
export function atScale(value: Decimal, scale: number): bigint {
  if (scale < value.scale) throw new RangeError('a decimal cannot be written with fewer places than it has')
  return value.digits * 10n ** BigInt(scale - value.scale)
}

/** `value` divided by a whole number above zero, rounded half away from zero to `places` places. */
export function divide(value: Decimal, divisor: bigint, places: number): Decimal {
  const numerator = 2n * value.digits * 10n ** BigInt(places)
  const denominator = divisor * 10n ** BigInt(value.scale)
  const half = value.digits < 0n ? -denominator : denominator
  return { digits: (numerator + half) / (2n * denominator), scale: places }
}

/** As it is written in JSON, without zeros at the end: `-0.25`. */
export function decimalText({ digits, scale }: Decimal): string {
  const sign = digits < 0n ? '-' : ''
  const text = String(digits < 0n ? -digits : digits).padStart(scale + 1, '0')
  const whole = text.slice(0, text.length - scale)
  const fraction = text.slice(text.length - scale).replace(/0+$/, '')
  return `${sign}${whole}${fraction === '' ? '' : `.${fraction}`}`
}
