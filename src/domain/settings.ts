import type { AlertTarget } from './alert.ts'
import type { Guard } from './guard.ts'
import type { ContentLogSettings } from './content-log.ts'
import type { Json } from './json.ts'
import type { Options } from './options.ts'
import type { RateLimit } from './rate-limit.ts'
import type { Channel, StoredChannel } from './records/channel.ts'
import type { Group } from './records/group.ts'
import type { Model } from './records/model.ts'

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
  readonly guards: readonly Guard[]
  readonly contentLog: ContentLogSettings
}

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

/** How people sign in to the console. `docs/configuration.md: Sign-in`. */
export interface LoginSettings {
  /** Whether sign-in with username and password is allowed; access tokens always are. */
  readonly password: boolean
  readonly oidc: readonly OidcProvider[]
}

/** An identity provider of OpenID Connect. */
export interface OidcProvider {
  /** Its segment in the paths of sign-in. */
  readonly name: string
  /** Issuer identifier, as the provider's metadata states it. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
  /** Claim that names a new user. */
  readonly usernameClaim: string
  /**
   * Claim with the groups of the person in the directory; undefined if groups and roles are managed in the
   * gateway.
   */
  readonly groupClaim: string | undefined
  /** Values of the claim → groups of the gateway; the first that a person has applies. */
  readonly groups: ReadonlyMap<string, string>
  /** Values of the claim whose users are administrators. */
  readonly admins: readonly string[]
  /** Whether a first sign-in creates a user. */
  readonly create: boolean
}

/**
 * Sections whose entries can be set over HTTP; `ratios` are prices of models, relative or `exact`. The names of
 * `drains` are ids of channels, and those of `alerts` ids of receivers. Guards have their own names.
 */
export type StoredSection = 'options' | 'groups' | 'models' | 'ratios' | 'drains' | 'alerts' | 'guards'

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
