/** A JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: Json
}

/** A channel as set over HTTP. */
export interface ChannelDefinition {
  readonly name: string
  /** Fields of the channel as in gateway.yaml, without name and keys. */
  readonly declared: JsonObject
  readonly keys: readonly string[]
  /** 1 enabled, 2 disabled. */
  readonly status: 1 | 2
  /** Fields that related tools store with a channel, without meaning here. */
  readonly family: JsonObject
}

/** A stored channel. */
export interface StoredChannel extends ChannelDefinition {
  readonly id: number
  /** Changes with the definition, not with tests. */
  readonly version: string
  /** Unix seconds. */
  readonly created_time: number
  /** Unix seconds of the last test; 0 = never. */
  readonly testTime: number
  /** Duration of the last test. */
  readonly responseMs: number
}

/** Sections whose entries can be set over HTTP; `ratios` are prices of models: relative ones, or `exact`. */
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
