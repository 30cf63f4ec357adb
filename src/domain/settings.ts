import type { AlertTarget } from './alert.ts'
import type { Guard } from './guard.ts'
import type { ContentLogSettings } from './content-log.ts'
import type { Json } from './json.ts'
import type { McpSettings } from './mcp.ts'
import type { Options } from './options.ts'
import type { RateLimit } from './rate-limit.ts'
import type { Channel, StoredChannel } from './records/channel.ts'
import type { Group } from './records/group.ts'
import type { Model } from './records/model.ts'

/** The live configuration. It is immutable; every change replaces the whole object. */
export interface Settings {
  /** Hash that identifies all prices and ratios; stored with each charge. */
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
  readonly mcp: McpSettings
}

/** Rate limits that do not belong to a model or a channel; `docs/configuration.md: Rate limits`. */
export interface RateLimits {
  readonly global: RateLimit
  readonly relay: RateLimit
  readonly search: RateLimit
  readonly critical: RateLimit
  readonly key: RateLimit
  /**
   * Limit per user for requests of console sessions; it replaces the limits `global` and `search` for these
   * requests.
   */
  readonly console: RateLimit
}

/** The configured models combined with the built-in prices. */
export interface ModelCatalogue {
  /** Returns an entry for any name; an unknown model has neither vendor nor price. */
  get(name: string): Model
  /** Names of the models that the configuration declares. */
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
  /** Name of the provider in the URLs of sign-in. */
  readonly name: string
  /** Issuer identifier, as the provider's metadata states it. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
  /** Claim from which a new user gets its name. */
  readonly usernameClaim: string
  /**
   * Claim with the person's groups at the identity provider; undefined if groups and roles are managed in the
   * gateway.
   */
  readonly groupClaim: string | undefined
  /**
   * Groups of the gateway by value of the group claim. The first entry whose value the person has applies.
   */
  readonly groups: ReadonlyMap<string, string>
  /** Values of the group claim that make a person an administrator. */
  readonly admins: readonly string[]
  /** Whether a user is created when a person signs in for the first time. */
  readonly create: boolean
}

/**
 * Sections of settings that can be changed over HTTP. `ratios` has the prices of models, relative or `exact`.
 * The entries of `drains` are named by channel ids, those of `alerts` by ids of receivers, and those of `mcp_tools` by
 * listed names. `mcp_state` has the entry `toolsets` once there has been a toolset.
 */
export type StoredSection =
  | 'options'
  | 'groups'
  | 'models'
  | 'ratios'
  | 'drains'
  | 'alerts'
  | 'guards'
  | 'mcp_servers'
  | 'mcp_toolsets'
  | 'mcp_tools'
  | 'mcp_state'

/**
 * Sections whose entries are no settings of the file: drained channels, approved definitions of MCP tools, and whether there
 * has been a toolset.
 */
export type StateSection = Extract<StoredSection, 'drains' | 'mcp_tools' | 'mcp_state'>

/** An entry of a section: an option, group or model as in gateway.yaml, or price ratios as decimal texts. */
export interface StoredSetting {
  readonly section: StoredSection
  readonly name: string
  readonly value: Json
}

/** All settings that were changed over HTTP. */
export interface StoredConfiguration {
  readonly channels: readonly StoredChannel[]
  readonly entries: readonly StoredSetting[]
}

/** A changed configuration file that was refused, so that the running configuration differs from it. */
export interface RefusedConfiguration {
  /** Unix milliseconds. */
  readonly atMs: number
  /** The first mistake: its file, its line if it has one, and what is wrong. */
  readonly file: string
  readonly line: number | null
  readonly message: string
  readonly mistakes: number
}
