import { decimalText, parseDecimal } from '../../../src/domain/decimal.ts'
import { byTokenKind, defaultPrice, TOKEN_KINDS } from '../../../src/domain/token-kinds.ts'
import type { ManagedModel } from '../../api/models.ts'

/** The prices that the form always shows, by their names in gateway.yaml. */
export const MAIN_PRICES = ['input', 'output', 'cache_read'] as const

/** The prices that the form shows on request. */
export const MORE_PRICES = [
  'cache_write_5m',
  'cache_write_1h',
  'cache_write_30m',
  'cache_write_12h',
  'request',
  'web_search',
  'image_input',
  'audio_input',
  'image_output',
  'audio_output',
  'second',
  'characters',
] as const

const MAIN: ReadonlySet<string> = new Set(MAIN_PRICES)
const SHOWN = [...MAIN_PRICES, ...MORE_PRICES]

/** The name of a price that the form shows. */
export type PriceName = (typeof SHOWN)[number]

/** The typed prices of prompts above a number of tokens. */
export interface TypedTier {
  readonly above: string
  readonly input: string
  readonly output: string
  readonly cache_read: string
  /** Its other prices, which are not shown. */
  readonly otherFields: Readonly<Record<string, unknown>>
}

/** The typed prices, as decimal texts in USD; empty ones follow from others, or are absent. */
export interface TypedPrice {
  readonly amounts: Readonly<Record<PriceName, string>>
  readonly tiers: readonly TypedTier[]
}

const A_DECIMAL = /^\d+(?:\.\d+)?$/
const A_COUNT = /^[1-9]\d{0,8}$/

/** Whether a text is an amount of USD. */
export function isPrice(text: string): boolean {
  return A_DECIMAL.test(text.trim())
}

/** Whether a text is a number of tokens. */
export function isTokenCount(text: string): boolean {
  return A_COUNT.test(text.trim())
}

/** The initial prices of the form; further ones that follow from others, or are 0, are empty. */
export function typedPrice({ price, tiers }: Pick<ManagedModel, 'price' | 'tiers'>): TypedPrice {
  const shown = (name: PriceName): string => {
    const text = textOf(price, name)
    if (MAIN.has(name)) return text
    return isDerived(price, name) || Number(text) === 0 ? '' : text
  }
  return {
    amounts: Object.fromEntries(SHOWN.map((name) => [name, shown(name)])) as Record<PriceName, string>,
    tiers: tiers.map(typedTier),
  }
}

/** A new tier. */
export const NO_TIER: TypedTier = { above: '', input: '', output: '', cache_read: '', otherFields: {} }

/**
 * The price to store: the typed values, and the model's other prices. Prices that were derived from a changed
 * one are omitted, so that they are derived again.
 */
export function editedPrice({ price }: Pick<ManagedModel, 'price'>, { amounts, tiers }: TypedPrice): object {
  const shown: ReadonlySet<string> = new Set(SHOWN)
  const others = Object.entries(price ?? {}).filter(([name]) => !shown.has(name) && !isDerived(price, name))
  return {
    ...Object.fromEntries(others),
    ...stated(amounts),
    ...(tiers.length > 0 && {
      tiers: tiers.map(({ above, otherFields, ...prices }) => ({
        ...otherFields,
        above: Number(above),
        ...stated(prices),
      })),
    }),
  }
}

/** The USD of a call with 1,000 input and 500 output tokens; undefined where the prices are invalid. */
export function exampleCost({ amounts: { input, output } }: Pick<TypedPrice, 'amounts'>): number | undefined {
  if (!isPrice(input) || !isPrice(output)) return undefined
  return Number(((Number(input) * 1000 + Number(output) * 500) / 1_000_000).toPrecision(12))
}

function stated(amounts: Readonly<Record<string, string>>): object {
  return Object.fromEntries(
    Object.entries(amounts).flatMap(([name, text]) => (text.trim() === '' ? [] : [[name, text.trim()]])),
  )
}

function typedTier(tier: ManagedModel['tiers'][number]): TypedTier {
  const shown: ReadonlySet<string> = new Set(['above', ...MAIN_PRICES])
  const prices = tier as unknown as ManagedModel['price']
  return {
    above: String(tier.above),
    input: textOf(prices, 'input'),
    output: textOf(prices, 'output'),
    cache_read: isDerived(prices, 'cache_read') ? '' : textOf(prices, 'cache_read'),
    otherFields: Object.fromEntries(
      Object.entries(tier).filter(([name]) => !shown.has(name) && !isDerived(prices, name)),
    ),
  }
}

function isDerived(price: ManagedModel['price'], name: string): boolean {
  const kind = TOKEN_KINDS.find((one) => one.name === name)
  if (!kind) return false
  const prices = byTokenKind((one) => parseDecimal(textOf(price, one.name)))
  const [own, derived] = [prices[kind.name], defaultPrice(kind, prices)]
  return own !== undefined && derived !== undefined && decimalText(own) === decimalText(derived)
}

function textOf(price: ManagedModel['price'], name: string): string {
  const amount = price?.[name]
  return typeof amount === 'string' ? amount : ''
}
