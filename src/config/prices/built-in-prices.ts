import { createHash } from 'node:crypto'
import { type ConditionalPrice, findProvider, type ModelInfo, type ModelPrice } from '@pydantic/genai-prices'
import { LRUCache } from 'lru-cache'
import { isForUnsupportedEndpoint } from '../../domain/unsupported-endpoints.ts'
import type { Price } from '../../domain/price.ts'
import { matches, literalNames, withHyphenatedDate } from './match-rule.ts'
import { chargeablePrice, unchargedKinds } from './price-data.ts'
import { isRetired } from '../vendors/retired-models.ts'
import { VENDORS, type Vendor } from '../vendors/vendors.ts'

/** What the built-in table says of a model. */
interface BuiltInModel {
  readonly vendor: string
  /** Undefined where the table has no price that we can charge. */
  readonly price: Price | undefined
  /** Kinds of price in the data that we do not charge, in the data's own words: `input_audio_mtok`. */
  readonly uncharged: readonly string[]
}

/** Prices that come with the gateway. */
export interface BuiltInPrices {
  /** By that vendor's list if it knows the name, else by the first vendor's in order of preference. */
  get(name: string, vendor?: string): BuiltInModel | undefined
  /** The names that a vendor serves at its address today and that the gateway can call and charge for. */
  namesOf(vendor: Vendor): string[]
  /** Changes with the data. */
  readonly version: string
}

interface PriceListEntry {
  readonly vendor: string
  readonly model: ModelInfo
}

/** Callers may ask for any name; only so many are remembered, and longer ones are nobody's. */
const MAX_CACHED_NAMES = 4096
const MAX_NAME_LENGTH = 200

/** Priced by their vendor for each call, which the data does not list. */
const ADDITIONAL_MODELS: ReadonlyMap<string, readonly ModelInfo[]> = new Map([
  [
    'cohere',
    ['rerank-v3.5', 'rerank-english-v3.0', 'rerank-multilingual-v3.0'].map((id) => ({
      id,
      match: { equals: id },
      prices: { requests_kcount: 2 },
    })),
  ],
])

/**
 * The prices of @pydantic/genai-prices as installed: nothing is ever fetched. `now` decides between dated
 * prices.
 */
export function builtInPrices(now: () => Date = () => new Date()): BuiltInPrices {
  const lists = new Map(VENDORS.map(({ id }) => [id, modelsOf(id)]))
  const found = new LRUCache<string, PriceListEntry | 'none'>({ max: MAX_CACHED_NAMES })
  const read = new WeakMap<ModelPrice, BuiltInModel>()

  function listedBy(vendor: string, name: string): PriceListEntry | undefined {
    const models = lists.get(vendor) ?? modelsOf(vendor)
    const model = models.find(({ match }) => matches(match, name))
    return model && { vendor, model }
  }

  function search(name: string, vendor: string | undefined): PriceListEntry | undefined {
    for (const spelling of new Set([name, withHyphenatedDate(name)])) {
      const own = vendor === undefined ? undefined : listedBy(vendor, spelling)
      if (own) return own
      for (const { id, served: offers } of VENDORS) {
        const listed = offers && !offers.test(spelling) ? undefined : listedBy(id, spelling)
        if (listed) return listed
      }
    }
    return undefined
  }

  function get(name: string, vendor?: string): BuiltInModel | undefined {
    if (name.length > MAX_NAME_LENGTH) return undefined
    const key = JSON.stringify([name, vendor])
    let listed = found.get(key)
    if (listed === undefined) {
      listed = search(name, vendor) ?? 'none'
      found.set(key, listed)
    }
    if (listed === 'none') return undefined
    const data = currentPrice(listed.model.prices, now())
    let result = read.get(data)
    if (!result) {
      result = Object.freeze({
        vendor: listed.vendor,
        price: chargeablePrice(data),
        uncharged: unchargedKinds(data),
      })
      read.set(data, result)
    }
    return result
  }

  return {
    get,
    namesOf({ id, protocol, served: offers, uncallable }) {
      const today = now()
      const names = (lists.get(id) ?? []).flatMap((model) => {
        const prices = currentPrice(model.prices, today)
        const served = protocol === 'rerank' ? 'requests_kcount' in prices : 'output_mtok' in prices
        return served && chargeablePrice(prices) ? concreteNames(model) : []
      })
      return [...new Set(names)].filter(
        (name) =>
          (offers?.test(name) ?? true) &&
          !uncallable?.test(name) &&
          !isForUnsupportedEndpoint(name) &&
          !isRetired(id, name, today),
      )
    },
    version: createHash('sha256')
      .update(JSON.stringify([...lists]))
      .digest('hex'),
  }
}

function modelsOf(vendor: string): readonly ModelInfo[] {
  const provider = findProvider({ providerId: vendor })
  return [...(provider?.id === vendor ? provider.models : []), ...(ADDITIONAL_MODELS.get(vendor) ?? [])]
}

/**
 * Names under which a model can be asked for: those that its rule spells out, and its id unless that is only
 * a stem.
 */
function concreteNames({ id, match }: ModelInfo): string[] {
  const own = matches(match, id) && !id.endsWith('-') && !literalNames(match).some((name) => name === id)
  return own ? [id, ...literalNames(match)] : literalNames(match)
}

/** Of prices with dates or times of day, the last whose condition holds; else the first. */
export function currentPrice(prices: ModelPrice | readonly ConditionalPrice[], now: Date): ModelPrice {
  if (!isList(prices)) return prices
  return (prices.findLast(({ constraint }) => holds(constraint, now)) ?? prices[0])?.prices ?? {}
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
