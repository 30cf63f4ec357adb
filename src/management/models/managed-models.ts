import { z } from 'zod'
import { versionOf } from '../../domain/object-version.ts'
import { priceTexts } from '../../domain/price-texts.ts'
import type { Settings } from '../../domain/settings.ts'
import type { StoredConfiguration } from '../../domain/stored-configuration.ts'
import { tokenPriceTexts } from '../../domain/token-kinds.ts'
import type { AdministrationParts } from '../parts.ts'
import type { LiveSettings } from '../settings/live-settings.ts'

const DAY_MS = 86_400_000
/** Number of days, up to today, over which calls are counted. */
const COUNTED_DAYS = 30

const amount = z.string().describe('A decimal')
const price = z.record(z.string(), z.union([amount, z.record(z.string(), amount)]))

/** A model with its price, in USD as in gateway.yaml. `docs/administration.md: Models`. */
export const managedModelSchema = z.object({
  model: z.string(),
  vendor: z.string().nullable(),
  price: price.nullable(),
  tiers: z.array(z.object({ above: z.int() }).catchall(z.union([z.int(), amount]))),
  source: z.enum(['file', 'set', 'built-in', 'none']),
  channels: z.array(z.string()),
  groups: z.array(z.string()),
  calls_30d: z.int(),
  version: z.string(),
})

type ManagedModel = z.output<typeof managedModelSchema>

/** All models that a channel serves or that are configured, by name. */
export async function managedModels(parts: AdministrationParts): Promise<ManagedModel[]> {
  const { store, settings, liveConfig, nowMs } = parts
  const last = Math.floor(nowMs() / DAY_MS)
  const [stored, used] = await Promise.all([
    store.read('storedConfiguration'),
    store.read('usageGroups', { by: 'model', days: { first: last - COUNTED_DAYS + 1, last } }),
  ])
  const calls = new Map(used.map(({ name, requests }) => [name, requests]))
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
      channels: serving.map(({ name }) => name),
      groups: [...new Set(serving.flatMap(({ groups }) => groups))].toSorted(),
      calls_30d: calls.get(model) ?? 0,
    }
  })
}

/** The price of a model, its origin, and the version of both. */
export function pricePart(
  live: Settings,
  { declared }: LiveSettings,
  { entries }: StoredConfiguration,
  model: string,
): Pick<ManagedModel, 'price' | 'tiers' | 'source' | 'version'> {
  const { price } = live.models.get(model)
  const set = entries.find(({ section, name }) => section === 'ratios' && name === model)
  const sourceOfLive = (): ManagedModel['source'] => {
    if (declared.models.has(model)) return 'file'
    return set ? 'set' : 'built-in'
  }
  const shown = {
    price: price ? (priceTexts(price) as NonNullable<ManagedModel['price']>) : null,
    tiers: price?.tiers.map(({ above, tokens }) => ({ above, ...tokenPriceTexts(tokens) })) ?? [],
    source: price ? sourceOfLive() : ('none' as const),
  }
  // The stored price is included, because another node may have set it before this node has read it.
  return { ...shown, version: versionOf([shown, set?.value]) }
}
