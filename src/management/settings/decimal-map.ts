import { type Decimal, decimalText, parseDecimal } from '../../domain/decimal.ts'
import type { ImagePrices } from '../../domain/price.ts'
import { isFullyVisible } from '../../domain/username.ts'
import { GatewayError } from '../../errors.ts'

/**
 * A reviver for `JSON.parse` that gets the source text of numbers, so that `1.10` stays exact. TypeScript's
 * library does not declare it yet.
 */
type SourceReviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown

const parseWithSource = JSON.parse as (text: string, reviver: SourceReviver) => unknown

const EXPECTED = 'expected a text that holds a JSON object'

/**
 * Parses a JSON object, and keeps numbers as they are written. Throws `invalid_request` for anything else.
 * Entries with an invalid name are passed to `leaveOut`, which throws unless the caller can do without them.
 */
export function parseJsonMapping(
  key: string,
  text: string,
  leaveOut: (name: string, error: GatewayError) => void = (_, error) => {
    throw error
  },
): ReadonlyMap<string, unknown> {
  let value: unknown
  try {
    value = parseWithSource(text, (_, part, { source }) =>
      typeof part === 'number' ? new NumberText(source ?? String(part)) : part,
    )
  } catch {
    throw new GatewayError('invalid_request', `${key}: ${EXPECTED}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof NumberText) {
    throw new GatewayError('invalid_request', `${key}: ${EXPECTED}`)
  }
  const mapping = new Map(Object.entries(value))
  for (const name of mapping.keys()) {
    const isPlain = name !== '' && name !== '__proto__' && name.length <= 200 && !/\p{Cc}/u.test(name)
    if (isPlain && isFullyVisible(name)) continue
    mapping.delete(name)
    const message = `${key}: expected names of 1 to 200 characters, none of them invisible or blank`
    leaveOut(name, new GatewayError('invalid_request', message))
  }
  return mapping
}

/**
 * Parses a JSON object whose values are decimals from 0 to 1,000,000. Throws `invalid_request` for anything
 * else.
 */
export function parseDecimalMapping(key: string, text: string): ReadonlyMap<string, Decimal> {
  return new Map(
    [...parseJsonMapping(key, text)].map(([name, value]) => {
      const decimal = parseDecimalValue(value)
      if (decimal) return [name, decimal]
      throw new GatewayError(
        'invalid_request',
        `${key}: expected a number from 0 to 1000000 for ${JSON.stringify(name)}`,
      )
    }),
  )
}

/**
 * Parses a JSON object with the image prices of models: a decimal for each model, or an object of decimals by
 * size and quality.
 */
export function parseImagePriceMapping(key: string, text: string): ReadonlyMap<string, ImagePrices> {
  return new Map(
    [...parseJsonMapping(key, text)].map(([name, value]): [string, ImagePrices] => {
      const one = parseDecimalValue(value)
      if (one) return [name, { default: one }]
      const forms = typeof value === 'object' && value !== null ? Object.entries(value) : []
      const prices = forms.map(([form, price]) => [form, parseDecimalValue(price)] as const)
      const isValid = prices.length > 0 && prices.every(([, price]) => price !== undefined)
      if (isValid) return [name, Object.fromEntries(prices) as ImagePrices]
      throw new GatewayError(
        'invalid_request',
        `${key}: expected a number from 0 to 1000000, or an object of them by size, for ${JSON.stringify(name)}`,
      )
    }),
  )
}

/** Reads a value of a parsed JSON object as a decimal from 0 to 1,000,000; undefined if it is not one. */
export function parseDecimalValue(value: unknown): Decimal | undefined {
  const decimal = value instanceof NumberText ? parseDecimal(value.text) : undefined
  const isInRange = decimal && decimal.digits >= 0n && decimal.digits <= 10n ** BigInt(decimal.scale + 6)
  return isInRange ? decimal : undefined
}

/** Formats decimals as a JSON object with exact numbers. */
export function decimalsJson(decimals: ReadonlyMap<string, Decimal>): string {
  return `{${[...decimals].map(([name, value]) => `${JSON.stringify(name)}:${decimalText(value)}`).join(',')}}`
}

/** Whether two decimals are equal. */
export function sameDecimal(a: Decimal | undefined, b: Decimal | undefined): boolean {
  return (a && decimalText(a)) === (b && decimalText(b))
}

/** A number in JSON, as it is written. */
class NumberText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}
