import { FREE_PRICE, priceSetText, type Rate } from '../../domain/price.ts'
import type { Group } from '../../domain/records/group.ts'
import type { Model } from '../../domain/records/model.ts'
import type { Settings } from '../../domain/settings.ts'
import type { Store } from '../../store/store.ts'

/** What determines the price of a call. */
interface Terms {
  readonly settings: Settings
  readonly model: Model
  readonly group: Pick<Group, 'name'>
  readonly rate: Rate
}

/**
 * Stores the prices by which calls are charged, so that their cost can be explained later. Each set is stored
 * once, with the next commit.
 */
export class PriceSets {
  readonly #store: Pick<Store, 'write'>
  // A rate belongs to one version of the prices and one group; several models may share it.
  readonly #stored = new WeakMap<Rate, Set<string>>()

  constructor(store: Pick<Store, 'write'>) {
    this.#store = store
  }

  /** Records the prices of a call that will be charged. */
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
