import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { managedModelSchema } from '../../src/management/models/managed-models.ts'
import type { pricingSchema } from '../../src/management/models/pricing.ts'
import { request, requestWholeBody } from './client.ts'
import { type UnitPrice, unitPrices } from './unit-prices.ts'

type Pricing = z.output<typeof pricingSchema>

/** A model that the account may call; prices in USD per million tokens, `units` per another unit. */
export interface PricedModel {
  readonly name: string
  readonly vendor: string
  readonly input: number
  readonly output: number
  readonly cached: number
  readonly units: readonly UnitPrice[]
  /** Prices of long prompts, as decimal texts. */
  readonly tiers: ManagedModel['tiers']
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

/**
 * Sets the price of a model if the model still has this version; null restores the built-in price. Resolves to the model
 * as it is now, or to null if nothing names it any more.
 */
export function setPrice(model: string, version: string | undefined, price: object | null) {
  return request<ManagedModel | null>('PUT', '/api/models/price', { model, price, version })
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

/** A model as pages show it. A model without a price costs nothing. */
function pricedModel(model: Pricing['data'][number]): PricedModel {
  const price: NonNullable<typeof model.price> = model.price ?? {}
  const usd = (kind: string): number => Number(price[kind] ?? 0)
  return {
    name: model.model_name,
    vendor: model.owned_by,
    input: usd('input'),
    output: usd('output'),
    cached: usd('cache_read'),
    units: unitPrices(price),
    tiers: model.tiers,
    service: model.service,
    regions: model.regions,
    groups: model.enable_groups,
    endpoints: model.endpoints,
    endsOn: model.shutdown_date,
  }
}
