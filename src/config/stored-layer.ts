import { decimalText } from '../domain/decimal.ts'
import type { Price } from '../domain/price.ts'
import { pricedByRatios, readRatios } from '../domain/ratios.ts'
import type { Json, StoredConfiguration, StoredSection } from '../domain/stored-configuration.ts'
import type { Config } from './config.ts'
import type { YamlNode } from './yaml-node.ts'
import { jsonToYaml } from './json-to-yaml.ts'

/** Something set over HTTP, as the part of a file that would say the same. */
export interface LayerEntry {
  readonly section: 'channels' | StoredSection
  readonly name: string
  /** All that it says, to tell it from what it said before. */
  readonly content: string
  readonly tree: YamlNode
  readonly enabled: boolean
}

/** Where the entries of a section stand in a file. */
export const SECTION_KEYS = { options: 'options', groups: 'groups', ratios: 'models' } as const

/**
 * What was set over HTTP, one by one. Ratios that make no price, as nothing says what a prompt token costs,
 * are nothing.
 */
export function storedLayer(
  { builtIn, environmentChannels: fromKeys }: Config,
  { channels, entries }: StoredConfiguration,
): readonly LayerEntry[] {
  const priceOf = (model: string): Price | undefined =>
    builtIn.get(model, fromKeys.preferred.get(model))?.price
  return [
    ...channels.map(({ name, declared, keys, status }): LayerEntry => {
      const written = { ...declared, name, keys }
      const content = JSON.stringify([written, status])
      return { section: 'channels', name, content, tree: jsonToYaml(written), enabled: status === 1 }
    }),
    ...entries.flatMap(({ section, name, value }): LayerEntry[] => {
      const written = section === 'ratios' ? modelOf(value, priceOf(name)) : value
      if (written === undefined) return []
      return [{ section, name, content: JSON.stringify(value), tree: jsonToYaml(written), enabled: true }]
    }),
  ]
}

/** The entry of a model that ratios make over a price that is there. */
function modelOf(ratios: Json, base: Price | undefined): Json | undefined {
  const price = pricedByRatios(readRatios(ratios), base)
  if (!price) return undefined
  const { tokens, request, webSearch } = price
  return {
    price: {
      input: decimalText(tokens.input),
      output: decimalText(tokens.output),
      cache_read: decimalText(tokens.cacheRead),
      cache_write_5m: decimalText(tokens.cacheWrite5m),
      cache_write_1h: decimalText(tokens.cacheWrite1h),
      request: decimalText(request),
      web_search: decimalText(webSearch),
    },
  }
}
