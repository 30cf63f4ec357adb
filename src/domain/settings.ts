import type { AlertTarget } from './alert.ts'
import type { Budget } from './budget.ts'
import type { Channel } from './records/channel.ts'
import type { RateLimit } from './rate-limit.ts'
import type { Decimal } from './decimal.ts'
import type { LoginSettings } from './login-settings.ts'
import type { Options } from './options.ts'
import type { Price } from './price.ts'

/** Live configuration, immutable; a change replaces all of it. */
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

/** Limits that do not belong to a model or channel; `docs/configuration.md: Rate limits`. */
export interface RateLimits {
  readonly global: RateLimit
  readonly relay: RateLimit
  readonly search: RateLimit
  readonly critical: RateLimit
  readonly key: RateLimit
  /** Requests by a session, per user, in place of `global` and `search`. */
  readonly console: RateLimit
}

/** A group: the ratio of its prices, and who may choose it. */
export interface Group {
  readonly name: string
  readonly ratio: Decimal
  /** An open group may be named by any user's token, a closed one only by users whose own group it is. */
  readonly open: boolean
  /** Budget of all calls that are charged to the group. */
  readonly budget?: Budget | undefined
}

/** Form in which a model accepts thinking: a budget of tokens, an effort, or none. */
export type ThinkingForm = 'budget' | 'adaptive' | 'none'

/** Declared capabilities of a model; undefined ones follow from its name. `docs/configuration.md: Models`. */
export interface StatedCapabilities {
  /** Whether the model accepts `temperature`, `top_p` and `top_k`. */
  readonly sampling?: boolean | undefined
  readonly thinking?: ThinkingForm | undefined
  /** Whether messages of the history may have `reasoning_content` in chat. */
  readonly takesThoughts?: boolean | undefined
}

/** Choice among a model's channels of equal priority. `docs/configuration.md: Balance`. */
export type Balance = 'weight' | 'least_busy' | 'latency'

/** A model that clients may request. */
export interface Model {
  readonly name: string
  /** Name for `vendor_routes` of a token and `owned_by` of model lists; undefined if unknown. */
  readonly vendor: string | undefined
  /** Undefined if the model has no price. */
  readonly price: Price | undefined
  /** Tokens of its context, or what is assumed where the price data does not tell. */
  readonly contextTokens: number
  readonly rateLimit: RateLimit
  readonly capabilities: StatedCapabilities
  /** Models that calls go on with when no channel of this one answers, in this order. */
  readonly fallback: readonly string[]
  readonly balance: Balance
}

/** The configured models over the built-in price table. */
export interface ModelCatalogue {
  /** Returns a model for every name; an unknown one has neither vendor nor price. */
  get(name: string): Model
  /** Names that the configuration declares. */
  readonly declared: readonly string[]
}
