import { PROTOCOLS } from '@sluice/wire/protocols'
import { matchesWildcard } from '../domain/matches-wildcard.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { ModelCatalogue } from '../domain/settings.ts'
import type { PriceList } from './price-file.ts'
import { VENDORS } from './vendors.ts'

/**
 * Whether an entry of a channel's `models` is a pattern (`gpt-*`), which stands for all matching models with
 * a price.
 */
export function isModelPattern(entry: string): boolean {
  return entry.includes('*')
}

/** Whether a name matches a pattern, in which `*` matches any number of characters. */
export function matchesModelPattern(name: string, pattern: string): boolean {
  return matchesWildcard('*', pattern, name)
}

/**
 * The channels with patterns in `models` replaced by names: declared models with a price, models of the
 * prices file, and built-in models that can be called today. Built-in rerank models go only to channels with
 * the rerank protocol, all other built-in models only to other channels.
 */
export function replaceModelPatterns(
  channels: readonly Channel[],
  models: ModelCatalogue,
  prices: PriceList,
): readonly Channel[] {
  if (!channels.some((channel) => channel.models.some(isModelPattern))) return channels
  const declared = [
    ...models.declared.filter((name) => models.get(name).price !== undefined),
    ...prices.ofFile,
  ]
  const listed = VENDORS.map((vendor) => ({
    ranks: !PROTOCOLS[vendor.protocol].isConversation,
    names: prices.namesOf(vendor),
  }))
  return channels.map((channel) => {
    const fit = listed.filter(({ ranks }) =>
      channel.protocol.some((protocol) => PROTOCOLS[protocol].isConversation !== ranks),
    )
    const names = [...declared, ...fit.flatMap((one) => one.names)]
    const served = channel.models.flatMap((entry) =>
      isModelPattern(entry) ? names.filter((name) => matchesModelPattern(name, entry)) : [entry],
    )
    return { ...channel, models: [...new Set(served)] }
  })
}
