import { hash } from 'node:crypto'
import { FREE_PRICE, priceSetText, type ChargeRate } from '../../domain/price.ts'
import type { Group } from '../../domain/records/group.ts'
import type { Model } from '../../domain/records/model.ts'
import type { Settings } from '../../domain/settings.ts'
import type { Store } from '../../store/store.ts'

/** What determines the price of a call. */
interface Terms {
  readonly settings: Settings
  readonly model: Model
  readonly group: Pick<Group, 'name'>
  readonly rate: ChargeRate
}

/**
 * The version of the prices of a call that may be served by any of these models. It is the version of the
 * settings; if the price of one of the models depends on the date or time of day, it is a hash that includes
 * that moment.
 */
export function priceVersionOf(
  { priceVersion }: Pick<Settings, 'priceVersion'>,
  plans: readonly { readonly model: Pick<Model, 'name' | 'priceMoment'> }[],
): string {
  if (plans.every(({ model }) => model.priceMoment === undefined)) return priceVersion
  const moments = plans.map(({ model: { name, priceMoment } }) => [name, priceMoment])
  return hash('sha256', JSON.stringify([priceVersion, moments])).slice(0, priceVersion.length)
}

/**
 * Stores the prices by which calls are charged, so that their cost can be explained later. Each set is stored
 * once, with the next commit.
 */
export class PriceSets {
  readonly #store: Pick<Store, 'write'>
  // Keys of the prices already stored for each rate. A rate has one price version and one group; models may
  // share it.
  readonly #stored = new WeakMap<ChargeRate, Set<string>>()

  constructor(store: Pick<Store, 'write'>) {
    this.#store = store
  }

  /** Records the prices of a call that will be charged, under the version that its row states. */
  note({ settings, model, group, rate }: Terms, version: string): void {
    const known = this.#stored.get(rate)
    const ratio = settings.groups.get(group.name)?.ratio
    const key = `${version} ${model.name}`
    if (known?.has(key) || ratio === undefined) return
    const keys = known ?? new Set<string>()
    this.#stored.set(rate, keys.add(key))
    const { price = FREE_PRICE } = model
    this.#store
      .write('storePriceSet', {
        version,
        model: model.name,
        group: group.name,
        content: priceSetText({ price, ratio, quotaPerUnit: settings.options.quota_per_unit }),
      })
      .catch(() => keys.delete(key))
  }
}
