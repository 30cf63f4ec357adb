import { decimalText } from '../../domain/decimal.ts'
import {
  imagesJson,
  type RatioName,
  type Ratios,
  ratiosJson,
  ratiosOf,
  readRatios,
} from '../../domain/ratios.ts'
import type { Settings } from '../../domain/settings.ts'
import type { StoredConfiguration } from '../../domain/stored-configuration.ts'
import type { LiveSettings } from './live-settings.ts'

/** The options that are ratios of models. */
export const RATIO_OPTIONS = new Map<string, RatioName>([
  ['ModelRatio', 'model'],
  ['CompletionRatio', 'completion'],
  ['CacheRatio', 'cache'],
  ['CreateCacheRatio', 'createCache'],
  ['ImageRatio', 'image'],
  ['ImageCompletionRatio', 'imageCompletion'],
  ['AudioRatio', 'audio'],
  ['AudioCompletionRatio', 'audioCompletion'],
  ['CharacterPrice', 'characters'],
  ['SecondPrice', 'second'],
  ['SearchUnitPrice', 'search_unit'],
  ['ImagePrice', 'images'],
  ['ModelPrice', 'price'],
])

/**
 * The ratios of all models that are served, declared, or have stored ratios: the stored ones, otherwise those
 * of the live price.
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

/** One kind of ratio by model, as a JSON object of exact decimals; prices of images are by form. */
export function ratioText(all: ReadonlyMap<string, Ratios>, ratio: RatioName): string {
  const members = [...all].flatMap(([name, ratios]): string[] => {
    const text = valueText(ratios, ratio)
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`]
  })
  return `{${members.join(',')}}`
}

function valueText(ratios: Ratios, ratio: RatioName): string | undefined {
  if (ratio !== 'images') return ratios[ratio] && decimalText(ratios[ratio])
  const forms = Object.entries(ratios.images ? imagesJson(ratios.images) : {})
  if (forms.length === 0) return undefined
  const [[form, price] = ['', '']] = forms
  if (forms.length === 1 && form === 'default') return price
  return `{${forms.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`
}

/** Whether one kind of ratio is the same in both. */
export function isSameRatio(ratio: RatioName, a: Ratios | undefined, b: Ratios): boolean {
  const text = (ratios: Ratios | undefined): string | undefined =>
    JSON.stringify(ratiosJson({ [ratio]: ratios?.[ratio] }))
  return text(a) === text(b)
}
