import { z } from 'zod'
import type { Json } from '../../domain/json.ts'
import { requireVersion, versionOf } from '../../domain/object-version.ts'
import { FREE_PRICE } from '../../domain/price.ts'
import type { Settings, StoredConfiguration } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import type { SettingRowChange } from '../../store/operations/configuration.ts'
import { addCurrentObject, versionField } from '../expected-version.ts'
import { anyField, textField } from '../input-fields.ts'
import type { AdministrationServices, LiveSettings } from '../services.ts'
import { priceToShow, priceToShowSchema, servicePrices, servicePricesSchema } from './pricing.ts'

const DAY_MS = 86_400_000

/**
 * Number of days, up to today, for which a model's calls are counted; its callers are listed for
 * `CALLER_DAYS`.
 */
const COUNTED_DAYS = 30
const CALLER_DAYS = 7

/** A model with its price, in USD as in gateway.yaml. `docs/administration.md: Models`. */
export const managedModelSchema = z.object({
  model: z.string(),
  vendor: z.string().nullable(),
  ...priceToShowSchema,
  ...servicePricesSchema,
  source: z.enum(['file', 'set', 'prices_file', 'built-in', 'alias', 'none']),
  channels: z.array(z.string()),
  groups: z.array(z.string()),
  calls_30d: z.int(),
  shutdown_date: z.string().nullable().describe('Day on which the model ends, at 00:00 UTC; null if unknown'),
  successor: z.string().nullable(),
  keys_7d: z
    .array(
      z.object({
        id: z.int(),
        name: z.string(),
        user_id: z.int(),
        username: z.string(),
        calls: z.int(),
      }),
    )
    .describe('Keys that called a model with a known end in the last seven days, most calls first'),
  version: z.string(),
})

type ManagedModel = z.output<typeof managedModelSchema>

/** All models that a channel serves or that are configured, sorted by name. */
export async function managedModels(services: AdministrationServices): Promise<ManagedModel[]> {
  const { store, settings, liveConfig, modelEnds, nowMs } = services
  const last = Math.floor(nowMs() / DAY_MS)
  const ends = modelEnds.of(settings())
  const ending = ends.ending.map(({ model }) => model)
  const [stored, used, callers] = await Promise.all([
    store.read('storedConfiguration'),
    store.read('usageGroups', { by: 'model', days: { first: last - COUNTED_DAYS + 1, last } }),
    ending.length === 0
      ? []
      : store.read('modelCallers', { models: ending, first: last - CALLER_DAYS + 1, last }),
  ])
  const calls = new Map(used.map(({ name, requests }) => [name, requests]))
  const keys = new Map(callers.map((one) => [one.model, one.keys]))
  const live = settings()
  const named = [
    ...live.models.declared,
    ...live.channels.flatMap(({ models }) => models),
    ...stored.entries.flatMap(({ section, name }) => (section === 'ratios' ? [name] : [])),
  ]
  return [...new Set(named)].toSorted().map((model) => {
    const serving = live.channels.filter(({ models }) => models.includes(model))
    return {
      model,
      vendor: live.models.get(model).vendor ?? null,
      ...pricePart(live, liveConfig, stored, model),
      ...servicePrices(live.models.get(model).price ?? FREE_PRICE, model, serving),
      channels: serving.map(({ name }) => name),
      groups: [...new Set(serving.flatMap(({ groups }) => groups))].toSorted(),
      calls_30d: calls.get(model) ?? 0,
      shutdown_date: ends.endOf(model)?.end.on ?? null,
      successor: live.models.get(model).successor ?? null,
      keys_7d: [...(keys.get(model) ?? [])],
    }
  })
}

/** The price of a model, where it is stated, and a version that changes with either. */
function pricePart(
  live: Settings,
  { declared }: LiveSettings,
  { entries }: StoredConfiguration,
  model: string,
): Pick<ManagedModel, 'price' | 'tiers' | 'source' | 'version'> {
  const { price, pricedAs } = live.models.get(model)
  const set = entries.find(({ section, name }) => section === 'ratios' && name === model)
  const sourceOfLive = (): ManagedModel['source'] => {
    if (pricedAs !== undefined) return 'alias'
    if (declared.models.has(model)) return 'file'
    if (set) return 'set'
    return declared.listed.has(model) ? 'prices_file' : 'built-in'
  }
  const shown = {
    ...priceToShow(price),
    source: price ? sourceOfLive() : ('none' as const),
  }
  // The version includes the stored price, which another node may have changed while this node has not read
  // it yet.
  return { ...shown, version: versionOf([shown, set?.value]) }
}

const A_PRICE = { error: 'expected null, or an object of prices as in gateway.yaml' }

/**
 * Input with a model and its price, whose fields the schema of gateway.yaml checks; null restores the
 * built-in price.
 */
export const modelPriceBody = z.object(
  {
    model: textField('expected the name of a model')
      .min(1, { error: 'expected the name of a model' })
      .max(200, {
        error: 'expected the name of a model, of at most 200 characters',
      }),
    price: z.record(textField('expected the name of a price'), anyField(), A_PRICE).nullable(),
    version: versionField.nullish(),
  },
  { error: 'expected an object with model and price' },
)

/** Input with the prices of several models. */
export const modelPricesBody = z.object(
  {
    items: z
      .array(modelPriceBody, { error: 'expected a list of models with prices' })
      .min(1, { error: 'expected at least one model' })
      .max(500, { error: 'expected at most 500 models' }),
  },
  { error: 'expected an object with items' },
)

/**
 * Sets the price of a model, in place of any price or ratios set before; null removes them. Throws
 * `managed_by_file` if gateway.yaml declares the model, `changed_meanwhile` with the present model if its version is not
 * the given one, and `invalid_request` if gateway.yaml would not accept the price. Resolves to the model, if it is still
 * one that a channel serves or that is configured.
 */
export async function setModelPrice(
  services: AdministrationServices,
  item: z.output<typeof modelPriceBody>,
): Promise<ManagedModel | undefined> {
  const present = async (): Promise<ManagedModel | undefined> =>
    (await managedModels(services)).find(({ model }) => model === item.model)
  await addCurrentObject(() => setPrices(services, [item]), present)
  return present()
}

/** Sets the prices of several models: all of them, or none if one is refused. The error names the model. */
export function setModelPrices(
  services: AdministrationServices,
  { items }: z.output<typeof modelPricesBody>,
): Promise<void> {
  const repeated = items.find(({ model }, place) => items.findIndex((one) => one.model === model) < place)
  if (repeated) throw new GatewayError('invalid_request', `items: ${repeated.model} is named twice`)
  return setPrices(services, items)
}

async function setPrices(
  { store, settings, liveConfig }: AdministrationServices,
  items: readonly z.output<typeof modelPriceBody>[],
): Promise<void> {
  for (const { model } of items) requireUndeclared(liveConfig, model)
  const changes = items.map(({ model, price }) => {
    const value = price === null ? undefined : { exact: price as { readonly [key: string]: Json } }
    return { section: 'ratios' as const, name: model, value }
  })
  const changed = new Set(items.map(({ model }) => model))
  let expected: readonly SettingRowChange[] = []
  await liveConfig.change(
    (stored) => {
      const set = new Map(
        stored.entries.flatMap(({ section, name, value }) => (section === 'ratios' ? [[name, value]] : [])),
      )
      // The write fails if these values have changed, because another node may set a price meanwhile.
      expected = items.flatMap(({ model, version }) => {
        if (version === undefined || version === null) return []
        const present = pricePart(settings(), liveConfig, stored, model).version
        requireModelVersion(version, present, items.length > 1 ? model : undefined)
        return [{ section: 'ratios', name: model, value: set.get(model) }]
      })
      const others = stored.entries.filter(({ section, name }) => section !== 'ratios' || !changed.has(name))
      const entries = changes.flatMap(({ value, ...entry }) => (value ? [{ ...entry, value }] : []))
      return { ...stored, entries: [...others, ...entries] }
    },
    () => store.write('setStoredSettings', { changes, expected }),
  )
}

function requireModelVersion(given: string, present: string, model: string | undefined): void {
  try {
    requireVersion(given, present)
  } catch (error) {
    if (!(error instanceof GatewayError) || model === undefined) throw error
    throw new GatewayError('changed_meanwhile', `${model}: ${error.message}`)
  }
}

function requireUndeclared(liveConfig: LiveSettings, model: string): void {
  if (liveConfig.declared.models.has(model)) {
    throw new GatewayError(
      'managed_by_file',
      `model: models.${model} is set in gateway.yaml, and can be changed there alone`,
    )
  }
}
