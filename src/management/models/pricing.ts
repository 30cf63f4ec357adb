import { z } from 'zod'
import type { Channel } from '../../domain/records/channel.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import { type Decimal, decimalText, isGreaterDecimal } from '../../domain/decimal.ts'
import { endpointsFor, endpointTypes } from '../../domain/endpoints.ts'
import {
  FREE_PRICE,
  type ImagePrices,
  isDecimal,
  type Price,
  priceAsJson,
  servicePricesAsJson,
  tiersAsJson,
} from '../../domain/price.ts'
import { servicePricesToShow } from '../../domain/service-rate.ts'
import { ratiosOf } from '../../domain/ratios.ts'
import type { ModelCatalogue, Settings } from '../../domain/settings.ts'
import { toolKindsOfVendor, LISTED_TOOLS, priceOfToolUse, toolVendor } from '../../domain/tool-price.ts'
import type { User } from '../../domain/records/user.ts'
import type { ModelRetirements } from '../../upstreams/model-retirements.ts'
import { usableGroups } from '../users/user-object.ts'

const amount = z.string().describe('A decimal')
/** A part of a price. For a service tier it is a factor, or an object of prices. */
const part = z.union([amount, z.record(z.string(), z.unknown())])

/** The price of a model in USD, and those of its large prompts, as in gateway.yaml. */
export const priceToShowSchema = {
  price: z.record(z.string(), z.union([amount, z.record(z.string(), part)])).nullable(),
  tiers: z.array(z.object({ above: z.int() }).catchall(z.union([z.int(), amount]))),
}

/**
 * Prices of service tiers and regions: the declared ones, otherwise those that the vendor of the first
 * channel published.
 */
export const servicePricesSchema = {
  /** Prices by service tier: a factor for the token prices, or an object of prices that replace them. */
  service: z.record(z.string(), z.union([z.number(), z.record(z.string(), z.unknown())])),
  /** Factors for the token prices, by region. */
  regions: z.record(z.string(), z.number()),
}

const model = z.object({
  model_name: z.string(),
  /** 0 if tokens are charged, 1 if calls are charged. */
  quota_type: z.union([z.literal(0), z.literal(1)]),
  model_ratio: z.number(),
  /** USD per call. */
  model_price: z.number(),
  completion_ratio: z.number(),
  cache_ratio: z.number().optional(),
  create_cache_ratio: z.number().optional(),
  image_ratio: z.number().optional(),
  image_completion_ratio: z.number().optional(),
  audio_ratio: z.number().optional(),
  audio_completion_ratio: z.number().optional(),
  /** USD per million characters that are turned into speech. */
  character_price: z.number().optional(),
  /** USD per second of audio. */
  second_price: z.number().optional(),
  /** USD per search unit of a rerank call. */
  search_unit_price: z.number().optional(),
  /** USD per image, by `SIZE/QUALITY`, `SIZE` or `default`. */
  image_price: z.record(z.string(), z.number()).optional(),
  /** USD per use of a provider's tool, by kind; the highest price among the model's channels. */
  tool_prices: z.record(z.string(), z.number()),
  ...priceToShowSchema,
  ...servicePricesSchema,
  owned_by: z.string(),
  enable_groups: z.array(z.string()),
  supported_endpoint_types: z.array(z.string()),
  /** Names of the endpoints that can be called with the model: chat, messages, embeddings and others. */
  endpoints: z.array(z.string()),
  /** The day on which the model is shut down, at 00:00 UTC; absent if unknown. */
  shutdown_date: z.string().optional(),
})

interface ModelOffer {
  readonly groups: Set<string>
  readonly protocols: Set<ProtocolName>
  readonly channels: Channel[]
}

/** Prices of the models that a user may call, also as ratios, and the ratios of the groups. */
export const pricingSchema = z.object({
  success: z.literal(true),
  message: z.literal(''),
  data: z.array(model),
  group_ratio: z.record(z.string(), z.number()),
  usable_group: z.record(z.string(), z.string()),
  /** The built-in price list of providers' tools. */
  tools: z.array(
    z.object({
      vendor: z.string(),
      kind: z.string(),
      unit: z.string(),
      /** USD for one of what `unit` names, such as a call. */
      price: z.number(),
      source: z.string(),
      date: z.string(),
    }),
  ),
})

/** The current prices of the models that a user can call through a group that the user may use. */
export function pricing(
  settings: Settings,
  user: User,
  modelEnds: ModelRetirements,
): z.output<typeof pricingSchema> {
  const ends = modelEnds.of(settings)
  const groups = usableGroups(settings, user)
  const names = new Set(groups.map(({ name }) => name))
  const served = new Map<string, ModelOffer>()
  for (const channel of settings.channels) {
    const usable = channel.groups.filter((group) => names.has(group))
    if (usable.length === 0) continue
    for (const name of channel.models) {
      const one = served.get(name) ?? { groups: new Set(), protocols: new Set(), channels: [] }
      served.set(name, one)
      one.channels.push(channel)
      for (const group of usable) one.groups.add(group)
      for (const protocol of channel.protocol) one.protocols.add(protocol)
    }
  }
  return {
    success: true,
    message: '',
    data: [...served]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([name, one]) => {
        const shown = priced(settings, name, one)
        const on = ends.endOf(name)?.end.on
        return shown ? [{ ...shown, ...(on !== undefined && { shutdown_date: on }) }] : []
      }),
    group_ratio: Object.fromEntries(groups.map(({ name, ratio }) => [name, number(ratio)])),
    usable_group: Object.fromEntries(groups.map(({ name }) => [name, name])),
    tools: LISTED_TOOLS.map(({ vendor, kind, unit, price, source, date }) => ({
      vendor,
      kind,
      unit,
      price: Number(price),
      source,
      date,
    })),
  }
}

function priced(
  { models, options }: Settings,
  name: string,
  { groups, protocols, channels }: ModelOffer,
): z.output<typeof model> | undefined {
  const { price, vendor } = models.get(name)
  if (!price && options.unpriced_models === 'refuse') return undefined
  const ratios = price ? ratiosOf(price) : {}
  return {
    model_name: name,
    quota_type: ratios.price ? 1 : 0,
    model_ratio: number(ratios.model),
    model_price: number(ratios.price),
    completion_ratio: number(ratios.completion),
    ...(ratios.cache && { cache_ratio: number(ratios.cache) }),
    ...(ratios.createCache && { create_cache_ratio: number(ratios.createCache) }),
    ...(ratios.image && { image_ratio: number(ratios.image) }),
    ...(ratios.imageCompletion && { image_completion_ratio: number(ratios.imageCompletion) }),
    ...(ratios.audio && { audio_ratio: number(ratios.audio) }),
    ...(ratios.audioCompletion && { audio_completion_ratio: number(ratios.audioCompletion) }),
    ...(ratios.characters && { character_price: number(ratios.characters) }),
    ...(ratios.second && { second_price: number(ratios.second) }),
    ...(ratios.search_unit && { search_unit_price: number(ratios.search_unit) }),
    ...(ratios.images && { image_price: imagePrice(ratios.images) }),
    tool_prices: toolPrices(models, name, channels),
    ...priceToShow(price),
    ...servicePrices(price ?? FREE_PRICE, name, channels),
    owned_by: vendor ?? 'custom',
    enable_groups: [...groups],
    supported_endpoint_types: endpointTypes(protocols),
    endpoints: endpointsFor(protocols, name, price),
  }
}

/** The price of a model in the form of gateway.yaml; null if it has none. */
export function priceToShow(price: Price | undefined): Pick<z.output<typeof model>, 'price' | 'tiers'> {
  return {
    price: price ? (priceAsJson(price) as z.output<typeof model>['price']) : null,
    tiers: tiersAsJson(price?.tiers ?? []),
  }
}

/**
 * Prices of a model's service tiers and regions: the declared ones, otherwise those that the vendor of its
 * first channel (by priority) published.
 */
export function servicePrices(
  price: Price,
  name: string,
  channels: readonly Channel[],
): Pick<z.output<typeof model>, 'service' | 'regions'> {
  const [first] = channels.toSorted((one, other) => other.priority - one.priority)
  const { service, regions } = servicePricesToShow(price, first, first?.model_mapping.get(name) ?? name)
  return {
    service: Object.fromEntries(
      Object.entries(service).map(([tier, one]) => [
        tier,
        isDecimal(one) ? number(one) : (servicePricesAsJson({ own: one })['own'] as Record<string, unknown>),
      ]),
    ),
    regions: Object.fromEntries(Object.entries(regions).map(([region, one]) => [region, number(one)])),
  }
}

/** The highest price of each kind of tool among a model's channels, in USD. */
function toolPrices(
  models: ModelCatalogue,
  name: string,
  channels: readonly Channel[],
): Record<string, number> {
  const { price = FREE_PRICE } = models.get(name)
  const dearest = new Map<string, Decimal>()
  for (const channel of channels) {
    const model = channel.model_mapping.get(name) ?? name
    for (const dialect of channel.protocol) {
      const vendor = toolVendor(channel, dialect)
      const inputs = {
        stated: price.tools,
        vendor,
        dialect,
        model,
        offered: [],
        priceOf: (one: string) => models.get(one).price,
      }
      for (const kind of toolKindsOfVendor(inputs)) {
        const each = priceOfToolUse({ kind }, inputs)
        const before = dearest.get(kind)
        if (!before || isGreaterDecimal(each, before)) dearest.set(kind, each)
      }
    }
  }
  return Object.fromEntries([...dearest].map(([kind, each]) => [kind, number(each)]))
}

function imagePrice(images: ImagePrices): Record<string, number> {
  return Object.fromEntries(Object.entries(images).map(([form, price]) => [form, number(price)]))
}

function number(decimal: Decimal | undefined): number {
  return decimal ? Number(decimalText(decimal)) : 0
}
