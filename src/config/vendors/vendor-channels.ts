import { type Channel, CHANNEL_SETTINGS } from '../../domain/records/channel.ts'
import type { BuiltInPrices } from '../prices/built-in-prices.ts'
import { DEFAULT_GROUP } from '../groups.ts'
import { VENDORS } from './vendors.ts'

/**
 * Channels made from vendor keys in the environment, and the vendor whose price list applies to each model.
 */
export interface VendorChannels {
  readonly channels: readonly Channel[]
  readonly preferred: ReadonlyMap<string, string>
}

/**
 * One channel for each vendor with a key, with every model of its price list and those whose price the
 * operator declares. A name that several vendors list goes to the first of them, because a name can have only
 * one price.
 */
export function vendorChannels(keys: ReadonlyMap<string, string>, builtIn: BuiltInPrices): VendorChannels {
  const preferred = new Map<string, string>()
  const channels = VENDORS.flatMap((vendor): Channel[] => {
    const { id, variables, protocol, baseUrl, unpriced = [] } = vendor
    const key = variables.map((variable) => keys.get(variable)).find((value) => value !== undefined)
    if (key === undefined) return []
    const models = [...builtIn.namesOf(vendor), ...unpriced].filter((name) => !preferred.has(name))
    for (const name of models) preferred.set(name, id)
    if (models.length === 0) return []
    return [
      {
        ...CHANNEL_SETTINGS.defaults,
        name: protocol === 'rerank' ? `${id}-rerank` : id,
        protocol: [protocol],
        base_url: baseUrl,
        keys: [key],
        models,
        groups: [DEFAULT_GROUP],
      },
    ]
  })
  return { channels, preferred }
}
