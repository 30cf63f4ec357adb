import type { Channel } from '../domain/records/channel.ts'
import type { ModelCatalogue } from '../domain/settings.ts'
import { PROTOCOLS } from '../domain/protocols.ts'
import type { BuiltInPrices } from './prices/built-in-prices.ts'
import { VENDORS } from './vendors/vendors.ts'

/** Whether the entry of a channel's `models` stands for every priced model that matches. */
export function isModelPattern(entry: string): boolean {
  return entry.includes('*')
}

/** Whether a name matches a pattern, in which `*` stands for any characters or none. */
export function matchesModelPattern(name: string, pattern: string): boolean {
  const [first = '', ...others] = pattern.split('*')
  const last = others.pop()
  if (last === undefined) return name === pattern
  if (!name.startsWith(first)) return false
  let at = first.length
  for (const piece of others) {
    const found = name.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}

/**
 * The channels with the names of models in place of patterns: declared models with a price, and those of the
 * built-in table that can be called today. Models that rank go to channels that rank, all others to the rest.
 */
export function withModelNames(
  channels: readonly Channel[],
  models: ModelCatalogue,
  builtIn: BuiltInPrices,
): readonly Channel[] {
  if (!channels.some((channel) => channel.models.some(isModelPattern))) return channels
  const declared = models.declared.filter((name) => models.get(name).price !== undefined)
  const listed = VENDORS.map((vendor) => ({
    ranks: !PROTOCOLS[vendor.protocol].isConversation,
    names: builtIn.namesOf(vendor),
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
