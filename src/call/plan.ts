import { ZERO } from '../domain/decimal.ts'
import { FREE_PRICE, type Price, type ChargeRate, chargeRateOf } from '../domain/price.ts'
import type { Group } from '../domain/records/group.ts'
import type { Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import { asGatewayError, GatewayError } from '../errors.ts'
import { estimate } from './estimate.ts'
import type { ParsedRequest, Plan } from './request-stages.ts'
import type { ResolvedModel } from './routing.ts'
import { refuseUnpricedTools } from './tool-pricing.ts'

/** Facts that all plans of a call share. */
type CommonFacts = Pick<Plan, 'dialect' | 'body' | 'fields' | 'takeMemory' | 'settings' | 'requestedModel'>

/** The plans of a call, at least one, in the order in which they are tried. */
export type Plans = readonly [Plan, ...Plan[]]

/** The groups that may serve the call, without duplicates. */
export function groupsOfPlans(plans: Plans): readonly Plan['group'][] {
  const { group: first } = plans[0]
  if (plans.every(({ group }) => group.name === first.name)) return [first]
  return [...new Map(plans.map(({ group }) => [group.name, group])).values()]
}

/**
 * Plans the request for each model that may serve it, with prices and limits. Rejects if the first model cannot be used;
 * other models that cannot be used are left out.
 */
export async function planCall(
  common: CommonFacts,
  request: ParsedRequest,
  [first, ...others]: readonly ResolvedModel[],
  rates: CallRates,
): Promise<Plans> {
  const plans: [Plan, ...Plan[]] = [await planFor(first as ResolvedModel, common, request, rates)]
  for (const resolution of others) {
    try {
      plans.push(await planFor(resolution, common, request, rates))
    } catch (error) {
      // A fallback is skipped if it has no price or cannot serve this request.
      if (!asGatewayError(error)) throw error
    }
  }
  return plans
}

/**
 * Returns the plan with `bound` as the upper bound on the prompt's tokens; the same plan if its own bound is
 * not larger.
 */
export function withPromptBound(plan: Plan, bound: number): Plan {
  const { dialect, request, channels, rate, settings, model } = plan
  return { ...plan, estimate: estimate(dialect.endpoint, request, channels, rate, settings, model, bound) }
}

async function planFor(
  { name, model, group, channels: all, reason }: ResolvedModel,
  common: CommonFacts,
  called: ParsedRequest,
  rates: CallRates,
): Promise<Plan> {
  const { dialect, body, fields, takeMemory, settings, requestedModel } = common
  const request = name === called.model ? called : (called.forModel?.(name) ?? called)
  const serving = request.channelsFor?.(all) ?? all
  const isFree = request.charging !== undefined || (dialect.isFreeUnpriced && !model.price)
  const rate = isFree ? rates.free : rates.of(settings, model, group)
  const channels = await request.forChannels(serving, model)
  refuseUnpricedTools(settings, rate, channels)
  return {
    dialect,
    request,
    body: request.responses?.composed ?? body,
    fields,
    takeMemory,
    settings,
    requestedModel,
    model,
    group,
    rate,
    estimate: estimate(dialect.endpoint, request, channels, rate, settings, model),
    channels,
    ...(reason && { reason }),
  }
}

/**
 * Rates of calls: the price of a model multiplied by the ratio of a group. Each is computed when it is first
 * needed.
 */
export class CallRates {
  #free: ChargeRate | undefined
  // Groups and prices belong to one version of the configuration, so the cache ends with it.
  readonly #byGroup = new WeakMap<Group, WeakMap<Price, ChargeRate>>()

  /** The rate of calls that are always free. */
  get free(): ChargeRate {
    return (this.#free ??= chargeRateOf(FREE_PRICE, ZERO, 1))
  }

  /**
   * The rate of `model` in `group`. Throws for a model without a price, unless the operator has made such
   * models free.
   */
  of(settings: Settings, model: Model, group: Group): ChargeRate {
    const { options } = settings
    const price = model.price ?? (options.unpriced_models === 'free' ? FREE_PRICE : refuse(model))
    let byPrice = this.#byGroup.get(group)
    if (!byPrice) this.#byGroup.set(group, (byPrice = new WeakMap()))
    let rate = byPrice.get(price)
    if (!rate) byPrice.set(price, (rate = chargeRateOf(price, group.ratio, options.quota_per_unit)))
    return rate
  }
}

function refuse(model: Model): never {
  throw new GatewayError('model_price_error', `the model ${model.name.slice(0, 200)} has no price`)
}
