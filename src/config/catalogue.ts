import { LRUCache } from 'lru-cache'
import { type Model, MODEL_SETTINGS, type ModelSettings } from '../domain/records/model.ts'
import type { ModelCatalogue } from '../domain/settings.ts'
import type { BuiltInPrices } from './prices/built-in-prices.ts'

const MAX_CACHED_MODELS = 4096

/** Assumed context length, in tokens, of a model without one in the price data. */
const ASSUMED_CONTEXT_TOKENS = 200_000

/**
 * Combines the declared models with the built-in prices. `preferred` maps a model that is not declared to the
 * vendor whose price list applies.
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
