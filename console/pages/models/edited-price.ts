import { decimalText, parseDecimal } from '../../../src/domain/decimal.ts'
import { byTokenKind, defaultPrice, TOKEN_KINDS } from '../../../src/domain/token-kinds.ts'
import type { ManagedModel } from '../../api/models.ts'

/** The typed prices, as decimal texts in USD per million tokens. */
export interface TypedPrice {
  readonly input: string
  readonly output: string
  /** Empty if the gateway derives it from the input price. */
  readonly cached: string
}

const A_DECIMAL = /^\d+(?:\.\d+)?$/

/** Whether a text is an amount of USD. */
export function isPrice(text: string): boolean {
  return A_DECIMAL.test(text.trim())
}

/** The initial prices of the form. */
export function typedPrice({ price }: ManagedModel): TypedPrice {
  return {
    input: textOf(price, 'input'),
    output: textOf(price, 'output'),
    cached: textOf(price, 'cache_read'),
  }
}

/**
 * The price to store: the typed values, and the model's other prices. Prices that were derived from a changed
 * one are omitted, so that they are derived again.
 */
export function editedPrice({ price, tiers }: ManagedModel, { input, output, cached }: TypedPrice): object {
  const others = Object.entries(price ?? {}).filter(
    ([name]) => !['input', 'output', 'cache_read'].includes(name) && !isDerived(price, name),
  )
  return {
    ...Object.fromEntries(others),
    input: input.trim(),
    output: output.trim(),
    ...(cached.trim() !== '' && { cache_read: cached.trim() }),
    ...(tiers.length > 0 && { tiers }),
  }
}

/** The USD of a call with 1,000 input and 500 output tokens; undefined where the prices are invalid. */
export function exampleCost({ input, output }: TypedPrice): number | undefined {
  if (!isPrice(input) || !isPrice(output)) return undefined
  return Number(((Number(input) * 1000 + Number(output) * 500) / 1_000_000).toPrecision(12))
}

function isDerived(price: ManagedModel['price'], name: string): boolean {
  const kind = TOKEN_KINDS.find((one) => one.name === name)
  if (!kind) return false
  const prices = byTokenKind((one) => parseDecimal(textOf(price, one.name)))
  const [stated, derived] = [prices[kind.name], defaultPrice(kind, prices)]
  return stated !== undefined && derived !== undefined && decimalText(stated) === decimalText(derived)
}

function textOf(price: ManagedModel['price'], name: string): string {
  const amount = price?.[name]
  return typeof amount === 'string' ? amount : ''
}
