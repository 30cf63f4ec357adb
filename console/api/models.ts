import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { managedModelSchema } from '../../src/management/models/managed-models.ts'
import type { pricingSchema } from '../../src/management/models/pricing.ts'
import { request, requestWholeBody } from './client.ts'
import { type UnitPrice, unitPrices } from './unit-prices.ts'

type Pricing = z.output<typeof pricingSchema>

/** The price in USD per million tokens of a model whose ratio is 1; `docs/administration.md: Prices`. */
const USD_PER_RATIO = 2

/** A model that the account may call; prices in USD per million tokens, `units` per another unit. */
export interface PricedModel {
  readonly name: string
  readonly vendor: string
  readonly input: number
  readonly output: number
  readonly cached: number | undefined
  readonly cacheWrite: number | undefined
  readonly units: readonly UnitPrice[]
  readonly service: ManagedModel['service']
  readonly regions: ManagedModel['regions']
  readonly groups: readonly string[]
  readonly endpoints: readonly string[]
  /** The day on which the provider retires the model; undefined if it is not known. */
  readonly endsOn: string | undefined
}

/**
 * A model as administrators see it: its price, if there is one, in USD as decimal texts, and its channels.
 */
export type ManagedModel = z.output<typeof managedModelSchema>

/** All models that a channel serves or that are configured. */
export function managedModelsQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'managed-models'],
    queryFn: () => request<readonly ManagedModel[]>('GET', '/api/models'),
  })
}

/** Sets the price of a model if the model still has this version; null restores the built-in price. */
export async function setPrice(
  { model, version }: Pick<ManagedModel, 'model' | 'version'>,
  price: object | null,
): Promise<void> {
  await request('PUT', '/api/models/price', { model, price, version })
}

/** Sets the prices of several models if all of them still have these versions, otherwise of none. */
export async function setPrices(
  items: readonly (Pick<ManagedModel, 'model' | 'version'> & { readonly price: object })[],
): Promise<void> {
  await request('PUT', '/api/models/prices', { items })
}

/** The models that the account may call, with their prices. */
export function modelsQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'models'],
    queryFn: async () => (await requestWholeBody<Pricing>('GET', '/api/pricing')).data.map(pricedModel),
  })
}

function pricedModel(model: Pricing['data'][number]): PricedModel {
  const input = model.model_ratio * USD_PER_RATIO
  const times = (ratio: number | undefined): number | undefined =>
    ratio === undefined ? undefined : rounded(input * ratio)
  return {
    name: model.model_name,
    vendor: model.owned_by,
    input: rounded(input),
    output: rounded(input * model.completion_ratio),
    cached: times(model.cache_ratio),
    cacheWrite: times(model.create_cache_ratio),
    units: unitPrices({
      request: model.model_price,
      second: model.second_price,
      characters: model.character_price,
      search_unit: model.search_unit_price,
      image: model.image_price,
    }),
    service: model.service,
    regions: model.regions,
    groups: model.enable_groups,
    endpoints: model.endpoints,
    endsOn: model.shutdown_date,
  }
}

// Ratios are decimals; rounding hides the binary errors of their products.
function rounded(price: number): number {
  return Number(price.toPrecision(12))
}
