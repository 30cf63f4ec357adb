import { LRUCache } from 'lru-cache'
import type { Model, ModelCatalogue } from '../domain/settings.ts'
import type { BuiltInPrices } from './prices/built-in-prices.ts'
import type { ModelEntry } from './models.ts'
import { NO_LIMIT } from '../domain/rate-limit.ts'

const MAX_CACHED_MODELS = 4096

/** Tokens of the context of a model of which the price data does not tell them. */
const ASSUMED_CONTEXT_TOKENS = 200_000

const NO_FALLBACK: Model['fallback'] = Object.freeze([])
const NO_CAPABILITIES: Model['capabilities'] = Object.freeze({})

/**
 * The declared models over the built-in prices. `preferred` maps an undeclared model to its vendor's price
 * list.
 */
export function catalogue(
  declared: ReadonlyMap<string, ModelEntry>,
  preferred: ReadonlyMap<string, string>,
  builtIn: BuiltInPrices,
): ModelCatalogue {
  const models = new LRUCache<string, Model>({ max: MAX_CACHED_MODELS })
  return Object.freeze({
    declared: Object.freeze([...declared.keys()]),
    get(name: string): Model {
      const entry = declared.get(name)
      const listed = builtIn.get(name, entry?.vendor ?? preferred.get(name))
      const price = entry?.price ?? listed?.price
      const known = models.get(name)
      if (known && known.price === price) return known
      const vendor = entry?.vendor ?? listed?.vendor
      const model = Object.freeze({
        name,
        vendor,
        price,
        contextTokens: listed?.contextTokens ?? ASSUMED_CONTEXT_TOKENS,
        rateLimit: entry?.rateLimit ?? NO_LIMIT,
        capabilities: entry?.capabilities ?? NO_CAPABILITIES,
        fallback: entry?.fallback ?? NO_FALLBACK,
        balance: entry?.balance ?? 'weight',
      })
      if (entry || listed) models.set(name, model)
      return model
    },
  })
}
