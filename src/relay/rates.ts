import { ZERO } from '../domain/decimal.ts'
import { FREE_PRICE, type Price, type Rate, rateOf } from '../domain/price.ts'
import type { Group } from '../domain/records/group.ts'
import type { Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import type { PriceSets } from '../accounts/ledger/price-sets.ts'
import { GatewayError } from '../errors.ts'

/** Rates of calls. Each is computed when it is first needed. */
export class Rates {
  readonly #priceSets: Pick<PriceSets, 'note'>
  #free: Rate | undefined
  // Groups and prices belong to one version of the configuration, so the cache ends with it.
  readonly #byGroup = new WeakMap<Group, WeakMap<Price, Rate>>()

  constructor(priceSets: Pick<PriceSets, 'note'>) {
    this.#priceSets = priceSets
  }

  /** The rate of calls that are always free. */
  get free(): Rate {
    return (this.#free ??= rateOf(FREE_PRICE, ZERO, 1))
  }

  /**
   * The rate of `model` in `group`. A model without a price is refused, unless the operator has made such
   * models free.
   */
  of(settings: Settings, model: Model, group: Group): Rate {
    const { options } = settings
    const price = model.price ?? (options.unpriced_models === 'free' ? FREE_PRICE : refuse(model))
    let byPrice = this.#byGroup.get(group)
    if (!byPrice) this.#byGroup.set(group, (byPrice = new WeakMap()))
    let rate = byPrice.get(price)
    if (!rate) byPrice.set(price, (rate = rateOf(price, group.ratio, options.quota_per_unit)))
    this.#priceSets.note({ settings, model, group, rate })
    return rate
  }
}

function refuse(model: Model): never {
  throw new GatewayError('model_price_error', `the model ${model.name.slice(0, 200)} has no price`)
}
