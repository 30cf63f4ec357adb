import { z } from 'zod'
import { type Price, priceAsJson, tiersAsJson } from '../../domain/price.ts'
import { retirementOf } from '../../domain/price-data/retired-models.ts'
import { type AppliedPriceSource, priceSourcesOf } from '../../domain/price-data/price-sources.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { Model } from '../../domain/records/model.ts'
import type { StoredConfiguration } from '../../domain/settings.ts'
import type { AdministrationServices, LiveSettings } from '../services.ts'

const DAY_MS = 86_400_000

/** Age in days from which built-in data are marked as possibly outdated. */
const MAX_AGE_DAYS = 90

/** Where the price that applies to a model is stated. */
type PriceSource = 'file' | 'set' | 'prices_file' | 'built-in' | 'alias' | 'none'

/** The price that applies to a model which a channel serves, compared with the built-in data. */
export interface AppliedPrice {
  readonly model: string
  readonly vendor: string | null
  readonly source: PriceSource
  /** The model whose price applies, if the source is `alias`; else null. */
  readonly priced_as: string | null
  /** The price in the form that it has in gateway.yaml, in USD; null if there is none. */
  readonly price: JsonObject | null
  readonly tiers: readonly JsonObject[]
  /**
   * The day on which the built-in data were last checked, as YYYY-MM-DD; null unless the built-in price
   * applies.
   */
  readonly data_date: string | null
  /**
   * Parts in which a declared price differs from the built-in one. If a price lacks the part, its text is
   * empty.
   */
  readonly differences: readonly {
    readonly kind: string
    readonly declared: string
    readonly built_in: string
  }[]
  /**
   * The sources of built-in data that apply to the model: for prices, service tiers and regions, tools,
   * context lengths, and shutdowns.
   */
  readonly sources: readonly (AppliedPriceSource & { readonly old: boolean })[]
  /** The announced day of the model's shutdown, as YYYY-MM-DD; null if none was announced. */
  readonly ends: string | null
  /** Whether there are differences, or one of the sources was last checked more than 90 days ago. */
  readonly outdated: boolean
}

/** Whether built-in data that were last checked on this day (YYYY-MM-DD) may be outdated. */
export function isOutdatedPriceData(date: string, nowMs: number): boolean {
  return nowMs - Date.parse(date) > MAX_AGE_DAYS * DAY_MS
}

type PriceServices = Pick<AdministrationServices, 'settings' | 'liveConfig' | 'nowMs'> & {
  readonly store: Pick<AdministrationServices['store'], 'read'>
}

const listInput = z.object({ outdated: z.boolean().optional() })

/**
 * The prices of all models that channels serve, sorted by name; with `outdated`, only those that may be
 * wrong.
 */
export async function listPrices(services: PriceServices, input: unknown): Promise<AppliedPrice[]> {
  const { outdated } = listInput.parse(input)
  const stored = await services.store.read('storedConfiguration')
  const served = new Set(services.settings().channels.flatMap(({ models }) => models))
  const all = [...served].toSorted().map((model) => appliedPrice(services, stored, model))
  return outdated ? all.filter((one) => one.outdated) : all
}

function appliedPrice(
  { settings, liveConfig, nowMs }: PriceServices,
  stored: StoredConfiguration,
  name: string,
): AppliedPrice {
  const model = settings().models.get(name)
  const source = model.price ? sourceOf(liveConfig, stored, model) : 'none'
  const known = liveConfig.builtInPrice(name, model.vendor)
  const { vendor } = known
  const sources = priceSourcesOf({
    model: name,
    vendor,
    channels: settings().channels.filter(({ models }) => models.includes(name)),
    price: source === 'built-in' ? known : undefined,
  }).map((one) => ({ ...one, old: isOutdatedPriceData(one.date, nowMs()) }))
  const differences =
    model.price && known.price && source !== 'built-in' ? differencesOf(model.price, known.price) : []
  return {
    model: name,
    vendor: model.vendor ?? null,
    source,
    priced_as: model.pricedAs ?? null,
    price: model.price ? priceAsJson(model.price) : null,
    tiers: tiersAsJson(model.price?.tiers ?? []),
    data_date: source === 'built-in' ? known.date : null,
    differences,
    sources,
    ends: (vendor === undefined ? undefined : retirementOf(vendor, name)) ?? null,
    outdated: differences.length > 0 || sources.some(({ old }) => old),
  }
}

function sourceOf(
  { declared }: LiveSettings,
  { entries }: StoredConfiguration,
  { name: model, pricedAs }: Model,
): PriceSource {
  if (pricedAs !== undefined) return 'alias'
  if (declared.prices.has(model)) return 'file'
  // Settings changed over HTTP have no effect on models that gateway.yaml declares.
  const isSet = entries.some(({ section, name }) => section === 'ratios' && name === model)
  if (isSet && !declared.models.has(model)) return 'set'
  return declared.listed.has(model) ? 'prices_file' : 'built-in'
}

// Tools that a declared price does not state are not a difference, because their list price applies in any
// case.
function differencesOf(declared: Price, builtIn: Price): AppliedPrice['differences'] {
  const [one, other] = [flat(declared), flat(builtIn)]
  const kinds = new Set([...one.keys(), ...[...other.keys()].filter((kind) => !kind.startsWith('tools.'))])
  return [...kinds].flatMap((kind) => {
    const values = { declared: one.get(kind) ?? '', built_in: other.get(kind) ?? '' }
    return values.declared === values.built_in ? [] : [{ kind, ...values }]
  })
}

/** The parts of a price by their path: `input`, `image.1024x1024`, `tiers.200000.output`. */
function flat(price: Price): ReadonlyMap<string, string> {
  const { web_search: webSearch, ...texts } = priceAsJson(price)
  const tiers = Object.fromEntries(
    tiersAsJson(price.tiers).map(({ above, ...tokens }) => [String(above), tokens]),
  )
  const tools = { ...(texts['tools'] as JsonObject | undefined), ...(webSearch && { web_search: webSearch }) }
  const parts = new Map<string, string>()
  const add = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) parts.set(path, String(value))
    else for (const [key, part] of Object.entries(value)) add(part, path === '' ? key : `${path}.${key}`)
  }
  add({ ...texts, tools, tiers }, '')
  return parts
}
