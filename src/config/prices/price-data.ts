import type { ModelPrice, TieredPrices } from '@pydantic/genai-prices'
import { type Decimal, divide, parseDecimal, ZERO } from '../../domain/decimal.ts'
import { FREE_PRICE, type Price } from '../../domain/price.ts'
import { byTokenKind, completePrices, TOKEN_KINDS } from '../../domain/token-kinds.ts'
import type { ToolKind } from '@sluice/wire/tool-use'
import type { ToolPrices } from '../../domain/tool-use.ts'
import { freeze } from '../freeze.ts'

type ToolKeys = { readonly [Kind in ToolKind]?: string }

/** Prices that are missing from the data; see `media-prices.ts`. */
export type FurtherPrices = Partial<Pick<Price, 'characters' | 'second' | 'image'>>

/** Keys of prices per thousand calls, in USD: the data's own, and one used by the additional models. */
const COUNT_KEYS = { request: 'requests_kcount', search_unit: 'search_units_kcount' } as const

/** The data's keys of prices per thousand uses of a tool, in USD. */
const TOOL_KEYS = {
  web_search: 'web_searches_kcount',
  file_search: 'storage_searches_kcount',
} as const satisfies ToolKeys

/** The data's keys of prices per hour of recording, in USD, in order of preference. */
const HOUR_KEYS = ['input_audio_hours', 'audio_hours'] as const

const CHARGED_KEYS: ReadonlySet<string> = new Set([
  ...TOKEN_KINDS.flatMap(({ data }) => data ?? []),
  ...Object.values(COUNT_KEYS),
  ...Object.values(TOOL_KEYS),
  ...HOUR_KEYS,
])

const HOUR: Decimal = { digits: 3600n, scale: 0 }
/**
 * Decimal places of a price per second. Prices per hour have few, so that the rounding does not change the
 * cost of a day of recordings.
 */
const PLACES = 18

/** Converts a model's price from the data; undefined if it has no kind of price that is charged. */
export function chargeablePrice(data: ModelPrice, further: FurtherPrices = {}): Price | undefined {
  const second = perSecond(data)
  if (
    data['input_mtok'] === undefined &&
    data['output_mtok'] === undefined &&
    data[COUNT_KEYS.request] === undefined &&
    data[COUNT_KEYS.search_unit] === undefined &&
    second === undefined &&
    Object.keys(further).length === 0
  ) {
    return undefined
  }
  const starts = Object.values(data).flatMap((value) => (typeof value === 'object' ? value.tiers : []))
  const above = [...new Set(starts.map(({ start }) => start))].sort((a, b) => a - b)
  return freeze({
    ...FREE_PRICE,
    tokens: tokensAt(data, 0),
    tiers: above.map((start) => ({ above: start, tokens: tokensAt(data, start + 1) })),
    request: perCall(data[COUNT_KEYS.request]) ?? ZERO,
    tools: toolsIn(data),
    search_unit: perCall(data[COUNT_KEYS.search_unit]) ?? ZERO,
    ...(second && { second }),
    ...further,
  })
}

/** The kinds of price in the data that a call could cause but that are not charged. */
export function unchargedKinds(data: ModelPrice): readonly string[] {
  return Object.keys(data).filter((key) => data[key] !== undefined && !CHARGED_KEYS.has(key))
}

function tokensAt(data: ModelPrice, prompt: number): Price['tokens'] {
  const stated = byTokenKind(({ data: key }) => {
    const value = key === undefined ? undefined : data[key]
    return value === undefined ? undefined : exactDecimal(priceAt(value, prompt))
  })
  return completePrices({ ...stated, output: stated.output ?? ZERO })
}

function toolsIn(data: ModelPrice): ToolPrices {
  return Object.fromEntries(
    Object.entries(TOOL_KEYS).flatMap(([kind, key]) => {
      const price = perCall(data[key])
      return price ? [[kind, price]] : []
    }),
  )
}

function priceAt(value: number | TieredPrices, prompt: number): number {
  if (typeof value === 'number') return value
  return value.tiers.findLast(({ start }) => prompt > start)?.price ?? value.base
}

function perCall(perThousand: number | TieredPrices | undefined): Decimal | undefined {
  if (perThousand === undefined) return undefined
  const { digits, scale } = exactDecimal(priceAt(perThousand, 0))
  return { digits, scale: scale + 3 }
}

function perSecond(data: ModelPrice): Decimal | undefined {
  const perHour = data[HOUR_KEYS[0]] ?? data[HOUR_KEYS[1]]
  return perHour === undefined ? undefined : divide(exactDecimal(priceAt(perHour, 0)), HOUR, PLACES)
}

/** The exact decimal: the shortest notation of a double is the number that the data states. */
function exactDecimal(value: number): Decimal {
  const decimal = parseDecimal(value)
  if (!decimal || decimal.digits < 0n)
    throw new RangeError(`the price data holds ${value}, which is no price`)
  return decimal
}
