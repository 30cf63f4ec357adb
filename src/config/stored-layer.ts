import type { Price } from '../domain/price.ts'
import { priceTexts } from '../domain/price-texts.ts'
import { pricedByRatios, readRatios } from '../domain/ratios.ts'
import type { Json, JsonObject } from '../domain/records/field-types.ts'
import type { StoredConfiguration, StoredSection } from '../domain/stored-configuration.ts'
import type { Config } from './config.ts'
import type { YamlNode } from './yaml-node.ts'
import { jsonToYaml } from './json-to-yaml.ts'

/** One setting that was set over HTTP, in the form that the file would have. */
export interface LayerEntry {
  readonly section: 'channels' | StoredSection
  readonly name: string
  /** Its content as JSON, to tell whether it has changed. */
  readonly content: string
  readonly tree: YamlNode
  readonly enabled: boolean
}

/** The file's key for each section of stored settings. */
export const SECTION_KEYS = {
  options: 'options',
  groups: 'groups',
  models: 'models',
  ratios: 'models',
} as const

/**
 * The stored settings as a layer: one entry for each. Ratios that make no price, since nothing states the
 * price of a prompt token, are left out.
 */
export function storedLayer(
  { builtIn, environmentChannels }: Config,
  { channels, entries }: StoredConfiguration,
): readonly LayerEntry[] {
  const priceOf = (model: string): Price | undefined =>
    builtIn.get(model, environmentChannels.preferred.get(model))?.price
  return [
    ...channels.map(({ name, declared, keys, status }): LayerEntry => {
      const entry = { ...declared, name, keys }
      const content = JSON.stringify([entry, status])
      return { section: 'channels', name, content, tree: jsonToYaml(entry), enabled: status === 1 }
    }),
    ...entries.flatMap(({ section, name, value }): LayerEntry[] => {
      const entry = section === 'ratios' ? modelOf(value, priceOf(name)) : value
      if (entry === undefined) return []
      return [{ section, name, content: JSON.stringify(value), tree: jsonToYaml(entry), enabled: true }]
    }),
  ]
}

/** The model entry that an exact price states, or that ratios make from a base price. */
function modelOf(ratios: Json, base: Price | undefined): Json | undefined {
  const { exact } = asObject(ratios)
  if (exact !== undefined) return { price: exact }
  const price = pricedByRatios(readRatios(ratios), base)
  return price && { price: priceTexts(price) }
}

function asObject(value: Json): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
}
