import type { StoredChannel } from './records/channel.ts'
import type { Json } from './json.ts'

/** Sections whose entries can be set over HTTP; `ratios` are prices of models, relative or `exact`. */
export type StoredSection = 'options' | 'groups' | 'models' | 'ratios'

/** An entry of a section: an option, group or model as in gateway.yaml, or the ratios of a model as text. */
export interface StoredEntry {
  readonly section: StoredSection
  readonly name: string
  readonly value: Json
}

/** All configuration that was set over HTTP. */
export interface StoredConfiguration {
  readonly channels: readonly StoredChannel[]
  readonly entries: readonly StoredEntry[]
}
