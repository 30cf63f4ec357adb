import { type Decimal, decimalText, parseDecimal } from './decimal.ts'
import type { Price } from './price.ts'

/** Price of a model in a group, in one version of the prices. */
export interface PriceSet {
  readonly price: Price
  /** Ratio of the group. */
  readonly ratio: Decimal
  readonly quotaPerUnit: number
}

/** Formats a price set for `priceSetFrom`; a decimal becomes `{"decimal": "0.3"}`. */
export function priceSetText({ price, ratio, quotaPerUnit }: PriceSet): string {
  return JSON.stringify({ price, ratio, quotaPerUnit }, (_, value: unknown) =>
    isDecimal(value) ? { decimal: decimalText(value) } : value,
  )
}

/** Parses the text of a price set. */
export function priceSetFrom(text: string): PriceSet {
  return JSON.parse(text, (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || !('decimal' in value)) return value
    return parseDecimal(value.decimal as string) ?? value
  }) as PriceSet
}

function isDecimal(value: unknown): value is Decimal {
  return typeof value === 'object' && value !== null && typeof (value as Decimal).digits === 'bigint'
}
