import { LRUCache } from 'lru-cache'
import { type Model, MODEL_SETTINGS, type ModelSettings } from '../domain/records/model.ts'
import type { ModelCatalogue } from '../domain/settings.ts'
import type { BuiltInPrices } from './prices/built-in-prices.ts'

const MAX_CACHED_MODELS = 4096

/** Tokens of the context of a model of which the price data does not tell them. */
const ASSUMED_CONTEXT_TOKENS = 200_000

/**
 * The declared models over the built-in prices. `preferred` maps an undeclared model to its vendor's price
 * list.
 */
export function catalogue(
  declared: ReadonlyMap<string, ModelSettings>,
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
      const model = Object.freeze({
        ...MODEL_SETTINGS.defaults,
        ...entry,
        name,
        vendor: entry?.vendor ?? listed?.vendor,
        price,
        contextTokens: listed?.contextTokens ?? ASSUMED_CONTEXT_TOKENS,
      })
      if (entry || listed) models.set(name, model)
      return model
    },
  })
}
