import { FREE_PRICE, type Rate } from '../domain/price.ts'
import { priceSetText } from '../domain/price-set.ts'
import type { Group } from '../domain/records/group.ts'
import type { Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import type { Store } from '../store/store.ts'

/** Terms that a call is admitted on. */
interface Terms {
  readonly settings: Settings
  readonly model: Model
  readonly group: Pick<Group, 'name'>
  readonly rate: Rate
}

/**
 * Stores the prices that calls are charged by, so that their cost can be explained later: each set once, in
 * whatever commit comes next.
 */
export class PriceSets {
  readonly #store: Pick<Store, 'write'>
  // A rate belongs to one version of the prices and one group, and may be that of several models.
  readonly #stored = new WeakMap<Rate, Set<string>>()

  constructor(store: Pick<Store, 'write'>) {
    this.#store = store
  }

  /** Notes that a call is charged by these terms. */
  note({ settings, model, group, rate }: Terms): void {
    const known = this.#stored.get(rate)
    const ratio = settings.groups.get(group.name)?.ratio
    if (known?.has(model.name) || ratio === undefined) return
    const models = known ?? new Set<string>()
    this.#stored.set(rate, models.add(model.name))
    const { price = FREE_PRICE } = model
    this.#store
      .write('storePriceSet', {
        version: settings.priceVersion,
        model: model.name,
        group: group.name,
        content: priceSetText({ price, ratio, quotaPerUnit: settings.options.quota_per_unit }),
      })
      .catch(() => models.delete(model.name))
  }
}
