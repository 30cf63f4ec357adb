import { z } from 'zod'
import type { ProtocolName } from '../../domain/channel.ts'
import { type Decimal, decimalText } from '../../domain/decimal.ts'
import { endpointTypes } from '../../domain/endpoint-types.ts'
import type { ImagePrices } from '../../domain/image-price.ts'
import { ratiosOf } from '../../domain/ratios.ts'
import type { Settings } from '../../domain/settings.ts'
import type { User } from '../../domain/user.ts'
import { usableGroups } from '../users/usable-groups.ts'

const model = z.object({
  model_name: z.string(),
  /** 0 = by tokens, 1 = by calls. */
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
  /** USD per million characters. */
  character_price: z.number().optional(),
  /** USD per second. */
  second_price: z.number().optional(),
  /** USD per search unit of a rerank call. */
  search_unit_price: z.number().optional(),
  /** USD per image, by `SIZE/QUALITY`, `SIZE` or `default`. */
  image_price: z.record(z.string(), z.number()).optional(),
  owned_by: z.string(),
  enable_groups: z.array(z.string()),
  supported_endpoint_types: z.array(z.string()),
})

/** The prices of the models that a user may call, as ratios, and the ratios of groups. */
export const pricingSchema = z.object({
  success: z.literal(true),
  message: z.literal(''),
  data: z.array(model),
  group_ratio: z.record(z.string(), z.number()),
  usable_group: z.record(z.string(), z.string()),
})

/** The live prices of models that a channel serves to a group which a token of this user may name. */
export function pricing(settings: Settings, user: User): z.output<typeof pricingSchema> {
  const groups = usableGroups(settings, user)
  const names = new Set(groups.map(({ name }) => name))
  const served = new Map<string, { groups: Set<string>; protocols: Set<ProtocolName> }>()
  for (const channel of settings.channels) {
    const usable = channel.groups.filter((group) => names.has(group))
    if (usable.length === 0) continue
    for (const name of channel.models) {
      const one = served.get(name) ?? { groups: new Set(), protocols: new Set() }
      served.set(name, one)
      for (const group of usable) one.groups.add(group)
      for (const protocol of channel.protocols) one.protocols.add(protocol)
    }
  }
  return {
    success: true,
    message: '',
    data: [...served]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([name, one]) => priced(settings, name, [...one.groups], endpointTypes(one.protocols))),
    group_ratio: Object.fromEntries(groups.map(({ name, ratio }) => [name, number(ratio)])),
    usable_group: Object.fromEntries(groups.map(({ name }) => [name, name])),
  }
}

function priced(
  { models, options }: Settings,
  name: string,
  groups: string[],
  types: string[],
): z.output<typeof model>[] {
  const { price, vendor } = models.get(name)
  if (!price && options.unpricedModels === 'refuse') return []
  const ratios = price ? ratiosOf(price) : {}
  return [
    {
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
      ...(ratios.searchUnit && { search_unit_price: number(ratios.searchUnit) }),
      ...(ratios.images && { image_price: imagePrice(ratios.images) }),
      owned_by: vendor ?? 'custom',
      enable_groups: groups,
      supported_endpoint_types: types,
    },
  ]
}

function imagePrice(images: ImagePrices): Record<string, number> {
  return Object.fromEntries(Object.entries(images).map(([form, price]) => [form, number(price)]))
}

function number(decimal: Decimal | undefined): number {
  return decimal ? Number(decimalText(decimal)) : 0
}
