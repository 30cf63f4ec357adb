/** What JSON can say. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: Json
}

/** What a channel is, as it was set over HTTP. */
export interface ChannelDefinition {
  readonly name: string
  /** The fields of a channel as gateway.yaml writes them, but for its name and its keys. */
  readonly declared: JsonObject
  readonly keys: readonly string[]
  /** 1 enabled, 2 disabled. */
  readonly status: 1 | 2
  /** Fields that tools of this family of gateways keep with a channel, and that mean nothing here. */
  readonly family: JsonObject
}

/** The same as it is stored. */
export interface StoredChannel extends ChannelDefinition {
  readonly id: number
  /** Unix seconds. */
  readonly createdTime: number
  /** Unix seconds of the last test; 0 = never. */
  readonly testTime: number
  /** How long the last test took. */
  readonly responseMs: number
}

/**
 * The sections whose entries can be set over HTTP; `ratios` are the prices of models, relative to each other.
 */
export type StoredSection = 'options' | 'groups' | 'ratios'

/**
 * One entry of a section: an option or a group as gateway.yaml writes it, or the ratios of a model as texts.
 */
export interface StoredEntry {
  readonly section: StoredSection
  readonly name: string
  readonly value: Json
}

/** Everything that was set over HTTP beside gateway.yaml. */
export interface StoredConfiguration {
  readonly channels: readonly StoredChannel[]
  readonly entries: readonly StoredEntry[]
}
