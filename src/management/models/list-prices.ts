import { z } from 'zod'
import { type Price, priceTexts } from '../../domain/price.ts'
import { tokenPriceTexts } from '../../domain/token-kinds.ts'
import { retirementOf } from '../../domain/price-data/retired-models.ts'
import { type AppliedSource, sourcesOf } from '../../domain/price-data/sources-of.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { StoredConfiguration } from '../../domain/settings.ts'
import type { AdministrationServices, LiveSettings } from '../services.ts'

const DAY_MS = 86_400_000

/** Age in days from which built-in data may no longer be what the provider charges. */
const MAX_AGE_DAYS = 90

/** Where the price of a model is stated. */
type PriceSource = 'file' | 'set' | 'prices_file' | 'built-in' | 'none'

/** The price of a model that a channel serves, and what the built-in data say. */
export interface AppliedPrice {
  readonly model: string
  readonly vendor: string | null
  readonly source: PriceSource
  /** As in gateway.yaml, in USD; null without a price. */
  readonly price: JsonObject | null
  readonly tiers: readonly JsonObject[]
  /** The day of the built-in data, as YYYY-MM-DD, if its price applies. */
  readonly data_date: string | null
  /** The kinds of a declared price that the built-in data state otherwise; undefined on a side without it. */
  readonly differences: readonly {
    readonly kind: string
    readonly declared: string
    readonly built_in: string
  }[]
  /** The entries of the built-in data that apply: prices, tiers and regions, tools, context lengths, ends. */
  readonly sources: readonly (AppliedSource & { readonly old: boolean })[]
  /** The announced day of the model's shutdown, as YYYY-MM-DD; null if none was announced. */
  readonly ends: string | null
  /** Whether there are differences, or one of the entries is older than 90 days. */
  readonly outdated: boolean
}

/** Whether built-in data of this day, as YYYY-MM-DD, may no longer be what the provider charges. */
export function isOldData(date: string, nowMs: number): boolean {
  return nowMs - Date.parse(date) > MAX_AGE_DAYS * DAY_MS
}

type PriceServices = Pick<AdministrationServices, 'settings' | 'liveConfig' | 'nowMs'> & {
  readonly store: Pick<AdministrationServices['store'], 'read'>
}

const listInput = z.object({ outdated: z.boolean().optional() })

/** The prices of all models that channels serve, by name; with `outdated`, only those to look at. */
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
  const source = model.price ? sourceOf(liveConfig, stored, name) : 'none'
  const known = liveConfig.builtInPrice(name, model.vendor)
  const { vendor } = known
  const sources = sourcesOf({
    model: name,
    vendor,
    channels: settings().channels.filter(({ models }) => models.includes(name)),
    price: source === 'built-in' ? known : undefined,
  }).map((one) => ({ ...one, old: isOldData(one.date, nowMs()) }))
  const differences =
    model.price && known.price && source !== 'built-in' ? differencesOf(model.price, known.price) : []
  return {
    model: name,
    vendor: model.vendor ?? null,
    source,
    price: model.price ? priceTexts(model.price) : null,
    tiers: model.price ? tiersOf(model.price) : [],
    data_date: source === 'built-in' ? known.date : null,
    differences,
    sources,
    ends: (vendor === undefined ? undefined : retirementOf(vendor, name)) ?? null,
    outdated: differences.length > 0 || sources.some(({ old }) => old),
  }
}

function sourceOf({ declared }: LiveSettings, { entries }: StoredConfiguration, model: string): PriceSource {
  if (declared.prices.has(model)) return 'file'
  // A model of the file cannot be set over HTTP.
  const isSet = entries.some(({ section, name }) => section === 'ratios' && name === model)
  if (isSet && !declared.models.has(model)) return 'set'
  return declared.listed.has(model) ? 'prices_file' : 'built-in'
}

function tiersOf({ tiers }: Price): ({ readonly above: number } & JsonObject)[] {
  return tiers.map(({ above, tokens }) => ({ above, ...tokenPriceTexts(tokens) }))
}

// Tools that a price does not state have the price of their vendor's list, whatever states the other prices.
function differencesOf(declared: Price, builtIn: Price): AppliedPrice['differences'] {
  const [one, other] = [flat(declared), flat(builtIn)]
  const kinds = new Set([...one.keys(), ...[...other.keys()].filter((kind) => !kind.startsWith('tools.'))])
  return [...kinds].flatMap((kind) => {
    const values = { declared: one.get(kind) ?? '', built_in: other.get(kind) ?? '' }
    return values.declared === values.built_in ? [] : [{ kind, ...values }]
  })
}

/** The parts of a price by their paths: `input`, `image.1024x1024`, `tiers.200000.output`. */
function flat(price: Price): ReadonlyMap<string, string> {
  const { web_search: webSearch, ...texts } = priceTexts(price)
  const tiers = Object.fromEntries(tiersOf(price).map(({ above, ...tokens }) => [String(above), tokens]))
  const tools = { ...(texts['tools'] as JsonObject | undefined), ...(webSearch && { web_search: webSearch }) }
  const parts = new Map<string, string>()
  const add = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) parts.set(path, String(value))
    else for (const [key, part] of Object.entries(value)) add(part, path === '' ? key : `${path}.${key}`)
  }
  add({ ...texts, tools, tiers }, '')
  return parts
}
