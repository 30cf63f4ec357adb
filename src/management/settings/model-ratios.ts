import type { Decimal } from '../../domain/decimal.ts'
import { type RatioName, type Ratios, ratiosOf, readRatios } from '../../domain/ratios.ts'
import type { Settings } from '../../domain/settings.ts'
import type { StoredConfiguration } from '../../domain/stored-configuration.ts'
import type { LiveSettings } from './live-settings.ts'

/** The options that are ratios of models. */
export const RATIO_OPTIONS = new Map<string, RatioName>([
  ['ModelRatio', 'model'],
  ['CompletionRatio', 'completion'],
  ['CacheRatio', 'cache'],
  ['CreateCacheRatio', 'createCache'],
  ['ModelPrice', 'price'],
])

/**
 * The ratios of all models that are served, declared, or have stored ratios: the stored ones, else those of
 * the live price.
 */
export function modelRatios(
  settings: Settings,
  { declared }: LiveSettings,
  { entries }: StoredConfiguration,
): ReadonlyMap<string, Ratios> {
  const set = new Map(
    entries.flatMap(({ section, name, value }): [string, Ratios][] =>
      section === 'ratios' && !declared.models.has(name) ? [[name, readRatios(value)]] : [],
    ),
  )
  const served = settings.channels.flatMap(({ models }) => models)
  const names = new Set([...settings.models.declared, ...set.keys(), ...served])
  return new Map(
    [...names].toSorted().map((name): [string, Ratios] => {
      const price = settings.models.get(name).price
      return [name, { ...(price && ratiosOf(price)), ...set.get(name) }]
    }),
  )
}

/** One kind of ratio, by model. */
export function ratioOf(all: ReadonlyMap<string, Ratios>, ratio: RatioName): ReadonlyMap<string, Decimal> {
  return new Map(
    [...all].flatMap(([name, ratios]): [string, Decimal][] => {
      const value = ratios[ratio]
      return value ? [[name, value]] : []
    }),
  )
}
