import { PROTOCOLS } from '@sluice/wire/protocols'
import type { ToolKind } from '@sluice/wire/tool-use'
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import type {
  ConditionalPrice,
  MatchLogic,
  ModelInfo,
  ModelPrice,
  TieredPrices,
} from '@pydantic/genai-prices'
import { type Decimal, divide, parseDecimal, ZERO } from '../domain/decimal.ts'
import { endpointByName, isForUnsupportedEndpoint } from '../domain/endpoints.ts'
import { FREE_PRICE, type Price } from '../domain/price.ts'
import { valueForEachTokenKind, completeTokenPrices, TOKEN_KINDS } from '../domain/token-kinds.ts'
import { CONTEXT_LENGTHS } from '../domain/price-data/context-lengths.ts'
import { SERVICE_PRICES_TEXT } from '../domain/price-data/index.ts'
import {
  type NonTokenPrices,
  MEDIA_PRICES_TEXT,
  mediaModels,
  mediaPrices,
} from '../domain/price-data/media-prices.ts'
import type { DataSource } from '../domain/price-data/vendor-service.ts'
import { isRetired } from '../domain/price-data/retired-models.ts'
import { TOOL_LIST_TEXT } from '../domain/tool-price.ts'
import type { ToolPrices } from '../domain/tool-use.ts'
import { deepFreeze } from './deep-freeze.ts'
import { type Vendor, VENDORS } from './vendors.ts'

/** A model's entry in the built-in price table. */
interface BuiltInModel {
  readonly vendor: string | undefined
  /** The model's price; undefined if the table has none that can be charged. */
  readonly price: Price | undefined
  /** Context length in tokens; undefined if the data does not state it. */
  readonly contextTokens: number | undefined
  /** Set if the model has several prices: identifies the one that applies at this date and time of day. */
  readonly moment?: string
  /**
   * Kinds of price that the gateway does not charge, by their keys in the price data, such as
   * `input_audio_mtok`.
   */
  readonly uncharged: readonly string[]
}

/** The price table that comes with the gateway. */
export interface BuiltInPrices {
  /**
   * Returns the model's entry in the list of `vendor`, otherwise in that of the first vendor in order of
   * preference that has it.
   */
  get(name: string, vendor?: string): BuiltInModel | undefined
  /** The models that a vendor serves at its address today, and that the gateway can call and charge for. */
  namesOf(vendor: Vendor): string[]
  /** The day on which the price data were last compared with the vendors' pages, as YYYY-MM-DD. */
  readonly date: string
  /** A hash that identifies the price data. */
  readonly version: string
}

const require = createRequire(import.meta.url)

interface PriceListEntry {
  readonly vendor: string
  readonly model: ModelInfo
}

/**
 * Bounds of the cache of looked-up models, which is emptied when it is full: clients may ask for any name, so it must not grow
 * without limit. A cache that keeps the latest names would take five times as long for each look-up.
 * Real names are shorter than `MAX_NAME_LENGTH`.
 */
const MAX_CACHED_NAMES = 4096
const MAX_NAME_LENGTH = 200

/**
 * The version of the price data and the day of its last comparison. An update of the package must update
 * both.
 */
export const PRICE_DATA: DataSource = { source: '@pydantic/genai-prices 0.1.8', date: '2026-11-23' }

/** Models missing from the price data; `docs/configuration.md: Prices` names pages with their prices. */
const ADDITIONAL_MODELS: ReadonlyMap<string, readonly ModelInfo[]> = new Map<string, readonly ModelInfo[]>([
  [
    'openai',
    ['omni-moderation-latest', 'omni-moderation-2024-09-26'].map((id) => ({
      id,
      match: { equals: id },
      prices: { requests_kcount: 0 },
    })),
  ],
  [
    'cohere',
    ['rerank-v3.5', 'rerank-english-v3.0', 'rerank-multilingual-v3.0'].map((id) => ({
      id,
      match: { equals: id },
      prices: { search_units_kcount: 2 },
    })),
  ],
])

/**
 * The prices in @pydantic/genai-prices as installed; nothing is downloaded. `now` decides which of several
 * dated prices applies.
 */
export function builtInPrices(now: () => Date = () => new Date()): BuiltInPrices {
  const lists = new Map<string, readonly ModelInfo[]>()
  /** By the vendor that is preferred, and by name. */
  const found = new Map<string | undefined, Map<string, PriceListEntry | 'none'>>()
  const read = new WeakMap<ModelInfo, BuiltInModel & { readonly data: ModelPrice }>()

  function listOf(vendor: string): readonly ModelInfo[] {
    let models = lists.get(vendor)
    if (!models) lists.set(vendor, (models = modelsOf(vendor)))
    return models
  }

  function listedBy(vendor: string, name: string): PriceListEntry | undefined {
    const model = listOf(vendor).find(({ match }) => matchesModel(match, name))
    return model && { vendor, model }
  }

  function search(name: string, vendor: string | undefined): PriceListEntry | undefined {
    for (const spelling of new Set([name, withHyphenatedDate(name)])) {
      const own = vendor === undefined ? undefined : listedBy(vendor, spelling)
      if (own) return own
      for (const { id, served } of VENDORS) {
        const listed = served && !served.test(spelling) ? undefined : listedBy(id, spelling)
        if (listed) return listed
      }
    }
    return undefined
  }

  function get(name: string, vendor?: string): BuiltInModel | undefined {
    if (name.length > MAX_NAME_LENGTH) return undefined
    let byName = found.get(vendor)
    if (!byName) found.set(vendor, (byName = new Map()))
    let listed = byName.get(name)
    if (listed === undefined) {
      listed = search(name, vendor) ?? 'none'
      if (byName.size >= MAX_CACHED_NAMES) byName.clear()
      byName.set(name, listed)
    }
    if (listed === 'none') return undefined
    const data = currentPrice(listed.model.prices, now())
    const { vendor: id, model } = listed
    let result = read.get(model)
    if (result?.data !== data) {
      const price = chargeablePrice(data, mediaPrices(id, model.id))
      const contextTokens = model.context_window ?? CONTEXT_LENGTHS.get(id)?.models.get(model.id)
      const uncharged = unchargedPriceKeys(data)
      const moment = isList(model.prices) ? { moment: momentOf(model.prices, data) } : undefined
      result = Object.freeze({ vendor: id, price, contextTokens, uncharged, data, ...moment })
      read.set(model, result)
    }
    return result
  }

  return {
    get,
    date: PRICE_DATA.date,
    namesOf({ id, protocol, served, uncallable }) {
      const today = now()
      const isServed = (name: string, prices: ModelPrice): boolean => {
        // Models that do not hold conversations are selected by `served` alone.
        if (!PROTOCOLS[protocol].isConversation) return true
        return 'output_mtok' in prices || endpointByName(name) !== undefined
      }
      const names = listOf(id).flatMap((model) => {
        const prices = currentPrice(model.prices, today)
        const price = chargeablePrice(prices, mediaPrices(id, model.id))
        return price ? concreteNames(model).filter((name) => isServed(name, prices)) : []
      })
      return [...new Set(names)].filter(
        (name) =>
          (served?.test(name) ?? true) &&
          !uncallable?.test(name) &&
          !isForUnsupportedEndpoint(name) &&
          !isRetired(id, name, today),
      )
    },
    version: createHash('sha256')
      .update(JSON.stringify([PRICE_DATA, ...ADDITIONAL_MODELS]))
      .update(MEDIA_PRICES_TEXT)
      .update(TOOL_LIST_TEXT)
      .update(SERVICE_PRICES_TEXT)
      .digest('hex'),
  }
}

function modelsOf(vendor: string): readonly ModelInfo[] {
  // Loaded for the first model that is looked up: its 630 KB take 12 ms of a start.
  const { findProvider } = require('@pydantic/genai-prices') as typeof import('@pydantic/genai-prices')
  const provider = findProvider({ providerId: vendor })
  const listed = provider?.id === vendor ? provider.models : []
  const others = mediaModels(vendor)
    .filter((name) => !listed.some(({ match }) => matchesModel(match, name)))
    .map((name): ModelInfo => ({ id: name, match: namedOrDated(name), prices: {} }))
  return [...(ADDITIONAL_MODELS.get(vendor) ?? []), ...listed, ...others]
}

/** A rule that matches a model's name with and without a date: `tts-1`, `tts-1-1106`. */
function namedOrDated(name: string): ModelInfo['match'] {
  const escaped = name.replaceAll('.', String.raw`\.`)
  return { or: [{ equals: name }, { regex: String.raw`^${escaped}-(\d{4}|\d{4}-\d{2}-\d{2})$` }] }
}

/**
 * The names of a model that are known literally: those in its rule, and its id unless that is only a prefix.
 */
function concreteNames({ id, match }: ModelInfo): string[] {
  const own =
    matchesModel(match, id) && !id.endsWith('-') && !literalNamesOfRule(match).some((name) => name === id)
  return own ? [id, ...literalNamesOfRule(match)] : literalNamesOfRule(match)
}

/** The current price: the last one whose start date or time of day applies now, otherwise the first. */
export function currentPrice(prices: ModelPrice | readonly ConditionalPrice[], now: Date): ModelPrice {
  if (!isList(prices)) return prices
  return (prices.findLast(({ constraint }) => holds(constraint, now)) ?? prices[0])?.prices ?? {}
}

/** Identifies one of several prices, by its index. */
function momentOf(prices: readonly ConditionalPrice[], current: ModelPrice): string {
  return String(prices.findIndex((one) => one.prices === current))
}

function holds(constraint: ConditionalPrice['constraint'], now: Date): boolean {
  if (!constraint) return true
  if (constraint.type === 'start_date') return now >= new Date(constraint.start_date)
  const time = now.toISOString().slice(11, 19)
  const [start, end] = [constraint.start_time.slice(0, 8), constraint.end_time.slice(0, 8)]
  return start <= end ? time >= start && time < end : time >= start || time < end
}

function isList(prices: ModelPrice | readonly ConditionalPrice[]): prices is readonly ConditionalPrice[] {
  return Array.isArray(prices)
}

/** Whether a rule of the price data matches a model name. Case matters only for regular expressions. */
export function matchesModel(rule: MatchLogic, name: string): boolean {
  const lower = name.toLowerCase()
  if ('or' in rule) return rule.or.some((part) => matchesModel(part, name))
  if ('and' in rule) return rule.and.every((part) => matchesModel(part, name))
  if ('equals' in rule) return lower === rule.equals.toLowerCase()
  if ('starts_with' in rule) return lower.startsWith(rule.starts_with.toLowerCase())
  if ('ends_with' in rule) return lower.endsWith(rule.ends_with.toLowerCase())
  if ('contains' in rule) return lower.includes(rule.contains.toLowerCase())
  return new RegExp(rule.regex).test(name)
}

/** The names that a rule lists literally. */
export function literalNamesOfRule(rule: MatchLogic): string[] {
  if ('or' in rule) return rule.or.flatMap(literalNamesOfRule)
  return 'equals' in rule ? [rule.equals] : []
}

/**
 * Writes the date in `-20250929` as `-2025-09-29`, because some vendors and the price data write dates
 * differently.
 */
export function withHyphenatedDate(name: string): string {
  return name.replaceAll(/-(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)/g, '-$1-$2-$3')
}

type ToolKeys = { readonly [Kind in ToolKind]?: string }

/**
 * Keys in the price data of prices per thousand calls, in USD. Only models in `ADDITIONAL_MODELS` have the
 * second one.
 */
const COUNT_KEYS = { request: 'requests_kcount', search_unit: 'search_units_kcount' } as const

/** Keys in the price data of prices per thousand uses of a tool, in USD. */
const TOOL_KEYS = {
  web_search: 'web_searches_kcount',
  file_search: 'storage_searches_kcount',
} as const satisfies ToolKeys

/** Keys in the price data of prices per hour of audio, in USD; the first one that exists applies. */
const HOUR_KEYS = ['input_audio_hours', 'audio_hours'] as const

const CHARGED_KEYS: ReadonlySet<string> = new Set([
  ...TOKEN_KINDS.flatMap(({ data }) => data ?? []),
  ...Object.values(COUNT_KEYS),
  ...Object.values(TOOL_KEYS),
  ...HOUR_KEYS,
])

const HOUR: Decimal = { digits: 3600n, scale: 0 }

/**
 * Decimal places of a price per second, converted from a price per hour. With so many, the rounding does not
 * change the cost of a whole day of audio.
 */
const PLACES = 18

/**
 * Converts a model's entry in the price data to a price; undefined if it contains no price that the gateway
 * can charge.
 */
export function chargeablePrice(data: ModelPrice, further: NonTokenPrices = {}): Price | undefined {
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
  return deepFreeze({
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

/**
 * The keys of those prices in the price data that the gateway does not charge, although a provider may charge
 * them for a call.
 */
export function unchargedPriceKeys(data: ModelPrice): readonly string[] {
  return Object.keys(data).filter((key) => data[key] !== undefined && !CHARGED_KEYS.has(key))
}

function tokensAt(data: ModelPrice, prompt: number): Price['tokens'] {
  const stated = valueForEachTokenKind(({ data: key }) => {
    const value = key === undefined ? undefined : data[key]
    return value === undefined ? undefined : exactDecimal(priceAt(value, prompt))
  })
  return completeTokenPrices({ ...stated, output: stated.output ?? ZERO })
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

/**
 * The decimal number that the price data states. The shortest notation of the double has exactly its digits.
 */
function exactDecimal(value: number): Decimal {
  const decimal = parseDecimal(value)
  if (!decimal || decimal.digits < 0n)
    throw new RangeError(`the price data holds ${value}, which is not a price`)
  return decimal
}
