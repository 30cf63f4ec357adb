import { type Price, type Rate, rateOf } from '../domain/price.ts'
import type { Group, Model, Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'

const ZERO = { digits: 0n, scale: 0 }
const NOTHING = { input: ZERO, output: ZERO, cacheRead: ZERO, cacheWrite5m: ZERO, cacheWrite1h: ZERO }
const FREE: Price = { tokens: NOTHING, tiers: [], request: ZERO, webSearch: ZERO }

/** The rates of one reading of the configuration, made when they are first asked for. */
const RATES = new WeakMap<Settings, Map<Price, Map<Group, Rate>>>()

/** What a call of `model` under `group` is charged by. An unpriced model is refused, unless the operator gives it away. */
export function rateFor(settings: Settings, model: Model, group: Group): Rate {
  const price = model.price ?? (settings.options.unpricedModels === 'free' ? FREE : refuse(model))
  let rates = RATES.get(settings)
  if (!rates) RATES.set(settings, (rates = new Map()))
  let byGroup = rates.get(price)
  if (!byGroup) rates.set(price, (byGroup = new Map()))
  let rate = byGroup.get(group)
  if (!rate) byGroup.set(group, (rate = rateOf(price, group.ratio, settings.options.quotaPerUnit)))
  return rate
}

function refuse(model: Model): never {
  throw new GatewayError('model_price_error', `the model ${model.name.slice(0, 200)} has no price here`)
}
