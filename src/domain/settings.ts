import type { AlertTarget } from './alert.ts'
import type { Channel } from './records/channel.ts'
import type { RateLimit } from './rate-limit.ts'
import type { Group } from './records/group.ts'
import type { Model } from './records/model.ts'
import type { LoginSettings } from './login-settings.ts'
import type { Options } from './options.ts'

/** Live configuration. Immutable; every change replaces the whole object. */
export interface Settings {
  /** Identifies the prices and ratios; stored with each charge. */
  readonly priceVersion: string
  readonly options: Options
  readonly rateLimits: RateLimits
  readonly groups: ReadonlyMap<string, Group>
  readonly models: ModelCatalogue
  readonly channels: readonly Channel[]
  readonly login: LoginSettings
  readonly alerts: readonly AlertTarget[]
}

export type { Options }

/** Limits that do not belong to a model or a channel; `docs/configuration.md: Rate limits`. */
export interface RateLimits {
  readonly global: RateLimit
  readonly relay: RateLimit
  readonly search: RateLimit
  readonly critical: RateLimit
  readonly key: RateLimit
  /** Requests of sessions, per user, instead of `global` and `search`. */
  readonly console: RateLimit
}

/** The configured models combined with the built-in prices. */
export interface ModelCatalogue {
  /** Returns a model for every name; an unknown one has neither vendor nor price. */
  get(name: string): Model
  /** Names that the configuration declares. */
  readonly declared: readonly string[]
}
