import { decimalText, parseDecimal } from '../../../src/domain/decimal.ts'
import { valueForEachTokenKind, defaultPrice, TOKEN_KINDS } from '../../../src/domain/token-kinds.ts'
import type { ManagedModel } from '../../api/models.ts'
import { withoutGroups } from '../../components/money.ts'

/** The prices that the form always shows, by their names in gateway.yaml. */
export const MAIN_PRICES = ['input', 'output', 'cache_read'] as const

/** Prices that few models need, which the form shows on request. */
export const OPTIONAL_PRICES = [
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
/** Prices that are 0 where none is stated. */
const ZERO_BY_DEFAULT: ReadonlySet<string> = new Set(['request', 'second', 'characters'])
const SHOWN = [...MAIN_PRICES, ...OPTIONAL_PRICES]

export type PriceName = (typeof SHOWN)[number]

/** The typed prices of prompts above a number of tokens. */
export interface PriceTierFormValues {
  readonly above: string
  readonly input: string
  readonly output: string
  readonly cache_read: string
  /** Further prices for long prompts, which the form does not show. */
  readonly otherFields: Readonly<Record<string, unknown>>
}

/** The price of a service tier: a factor, or an input price and an output price. */
export interface ServiceTierFormValues {
  readonly tier: string
  readonly factor: string
  readonly input: string
  readonly output: string
  /** Further prices of the service tier, which the form does not show. */
  readonly otherFields: Readonly<Record<string, unknown>>
}

/** The factor by which prices are multiplied in a region. */
export interface RegionFormValues {
  readonly region: string
  readonly factor: string
}

/**
 * The typed prices, as decimal texts in USD. An empty price is derived from another price, or does not exist.
 */
export interface PriceFormValues {
  readonly amounts: Readonly<Record<PriceName, string>>
  readonly tiers: readonly PriceTierFormValues[]
  /** A service tier that is not listed has the price of the vendor. */
  readonly service: readonly ServiceTierFormValues[]
  readonly regions: readonly RegionFormValues[]
}

/** The same with each amount as a separate field, so that changes of two amounts are merged. */
export type TypedPrice = PriceFormValues['amounts'] & Omit<PriceFormValues, 'amounts'>

/** The parts of the form that consist of rows. */
export type PriceRowKind = 'tiers' | 'service' | 'regions'

const A_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,39}$/
const A_DECIMAL = /^\d+(?:\.\d+)?$/
const A_COUNT = /^[1-9]\d{0,8}$/

/** Whether a text is an amount of USD. */
export function isPriceText(text: string): boolean {
  return A_DECIMAL.test(withoutGroups(text))
}

/** Whether a text may be the name of a service tier or a region. */
export function isTierOrRegionName(text: string): boolean {
  return A_NAME.test(text.trim())
}

/** Whether a service tier has either a factor, or both an input price and an output price. */
export function isCompleteServicePrice({ factor, input, output }: ServiceTierFormValues): boolean {
  const own = [input, output].filter((text) => text.trim() !== '')
  return own.length === 0
    ? isPriceText(factor)
    : factor.trim() === '' && own.length === 2 && own.every(isPriceText)
}

export function isTokenCountText(text: string): boolean {
  return A_COUNT.test(withoutGroups(text))
}

/** The initial values of the form. Further prices are empty if they are their defaults. */
export function priceFormValues({ price, tiers }: Pick<ManagedModel, 'price' | 'tiers'>): PriceFormValues {
  const shown = (name: PriceName): string => {
    const text = textOf(price, name)
    if (MAIN.has(name)) return text
    return isDerived(price, name) || (ZERO_BY_DEFAULT.has(name) && Number(text) === 0) ? '' : text
  }
  return {
    amounts: Object.fromEntries(SHOWN.map((name) => [name, shown(name)])) as Record<PriceName, string>,
    tiers: tiers.map(typedTier),
    service: Object.entries(recordIn(price, 'service')).map(typedService),
    regions: Object.entries(recordIn(price, 'regions')).map(([region, factor]) => ({
      region,
      factor: String(factor),
    })),
  }
}

export const EMPTY_SERVICE_TIER: ServiceTierFormValues = {
  tier: '',
  factor: '',
  input: '',
  output: '',
  otherFields: {},
}

export const EMPTY_REGION: RegionFormValues = { region: '', factor: '' }

/** A new, empty row for prices of long prompts. */
export const EMPTY_PRICE_TIER: PriceTierFormValues = {
  above: '',
  input: '',
  output: '',
  cache_read: '',
  otherFields: {},
}

/**
 * The price to store: the typed values, and further prices of the model that the form does not show. Derived
 * prices are left out, so that the gateway derives them again.
 */
export function priceToStore(
  { price }: Pick<ManagedModel, 'price'>,
  { amounts, tiers, service, regions }: PriceFormValues,
): object {
  const shown: ReadonlySet<string> = new Set([...SHOWN, 'service', 'regions'])
  const others = Object.entries(price ?? {}).filter(([name]) => !shown.has(name) && !isDerived(price, name))
  return {
    ...Object.fromEntries(others),
    ...stated(amounts),
    ...(tiers.length > 0 && {
      tiers: tiers.map(({ above, otherFields, ...prices }) => ({
        ...otherFields,
        above: Number(withoutGroups(above)),
        ...stated(prices),
      })),
    }),
    ...(service.length > 0 && {
      service: Object.fromEntries(
        service.map(({ tier, factor, otherFields, ...prices }) => [
          tier.trim(),
          factor.trim() === '' ? { ...otherFields, ...stated(prices) } : withoutGroups(factor),
        ]),
      ),
    }),
    ...(regions.length > 0 && {
      regions: Object.fromEntries(
        regions.map(({ region, factor }) => [region.trim(), withoutGroups(factor)]),
      ),
    }),
  }
}

/** The cost in USD of a call with 1,000 input and 500 output tokens; undefined if the prices are invalid. */
export function exampleCallCost({
  amounts: { input, output },
}: Pick<PriceFormValues, 'amounts'>): number | undefined {
  if (!isPriceText(input) || !isPriceText(output)) return undefined
  const cost = Number(withoutGroups(input)) * 1000 + Number(withoutGroups(output)) * 500
  return Number((cost / 1_000_000).toPrecision(12))
}

function stated(amounts: Readonly<Record<string, string>>): object {
  return Object.fromEntries(
    Object.entries(amounts).flatMap(([name, text]) =>
      text.trim() === '' ? [] : [[name, withoutGroups(text)]],
    ),
  )
}

function typedTier(tier: ManagedModel['tiers'][number]): PriceTierFormValues {
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

function typedService([tier, stated]: [string, unknown]): ServiceTierFormValues {
  if (typeof stated !== 'object' || stated === null)
    return { ...EMPTY_SERVICE_TIER, tier, factor: String(stated) }
  const prices = stated as Record<string, unknown> as ManagedModel['price']
  return {
    tier,
    factor: '',
    input: textOf(prices, 'input'),
    output: textOf(prices, 'output'),
    otherFields: Object.fromEntries(
      Object.entries(stated).filter(
        ([name]) => !['input', 'output'].includes(name) && !isDerived(prices, name),
      ),
    ),
  }
}

function recordIn(price: ManagedModel['price'], name: string): Readonly<Record<string, unknown>> {
  const value: unknown = price?.[name]
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function isDerived(price: ManagedModel['price'], name: string): boolean {
  const kind = TOKEN_KINDS.find((one) => one.name === name)
  if (!kind) return false
  const prices = valueForEachTokenKind((one) => parseDecimal(textOf(price, one.name)))
  const [own, derived] = [prices[kind.name], defaultPrice(kind, prices)]
  return own !== undefined && derived !== undefined && decimalText(own) === decimalText(derived)
}

function textOf(price: ManagedModel['price'], name: string): string {
  const amount = price?.[name]
  return typeof amount === 'string' ? amount : ''
}
