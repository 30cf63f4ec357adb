import type { Channel, RateLimit } from './channel.ts'
import type { Decimal } from './decimal.ts'
import type { Price } from './price.ts'

/** What the operator decided, read whole from configuration; replaced whole, never edited. */
export interface Settings {
  /** Names this set of prices and ratios; stored with each charge. */
  readonly priceVersion: string
  readonly options: Options
  readonly rateLimits: RateLimits
  readonly groups: ReadonlyMap<string, Group>
  readonly models: ModelCatalogue
  readonly channels: readonly Channel[]
}

/** `docs/configuration.md: Options`. */
export interface Options {
  readonly quotaPerUnit: number
  readonly display: 'USD' | 'CNY' | 'TOKENS'
  readonly usdExchangeRate: Decimal
  readonly tokenStats: boolean
  readonly maxUserTokens: number
  /** Bytes of a decoded request body. */
  readonly bodyLimit: number
  readonly unpricedModels: 'refuse' | 'free'
  /** Output tokens held for a request that names no maximum. */
  readonly holdTokens: number
  readonly passThrough: boolean
  /** Further channels tried after a failure before the first byte. */
  readonly retries: number
  /** CIDRs whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[]
  readonly metricsToken: string
  readonly usageLogDays: number
  /** Requests that may be under way at one time. */
  readonly maxCalls: number
  /** How long running calls may take to end once the gateway is told to stop. */
  readonly drainTimeoutMs: number
  readonly media: {
    readonly allowPrivateNetworks: boolean
    readonly maxBytes: number
    readonly timeoutMs: number
  }
  /** Origins of pages in browsers that may call; `*` is every one. */
  readonly cors: { readonly origins: readonly string[] }
}

/** The named limits outside models and channels; `docs/configuration.md: Rate limits`. */
export interface RateLimits {
  readonly global: RateLimit
  readonly relay: RateLimit
  readonly search: RateLimit
  readonly critical: RateLimit
  readonly key: RateLimit
}

/** Who may use which channels, and at what ratio of the price. */
export interface Group {
  readonly name: string
  readonly ratio: Decimal
  /** Any user's token may name an open group; a closed one only users whose own group it is. */
  readonly open: boolean
}

/** How a model is told to think: within a budget of tokens, as it sees fit at an effort, or not at all. */
export type ThinkingForm = 'budget' | 'adaptive' | 'none'

/**
 * Capabilities that the operator states for a model; undefined ones go by its name. `docs/configuration.md:
 * Models`.
 */
export interface StatedCapabilities {
  /** Whether it takes `temperature`, `top_p` and `top_k`. */
  readonly sampling?: boolean | undefined
  readonly thinking?: ThinkingForm | undefined
}

/** A model that callers may ask for. */
export interface Model {
  readonly name: string
  /** The name that a token's vendor_routes uses, and `owned_by` in model lists; undefined if nobody says. */
  readonly vendor: string | undefined
  /** Undefined for a model without a price. */
  readonly price: Price | undefined
  readonly rateLimit: RateLimit
  readonly capabilities: StatedCapabilities
}

/** The configured models over the built-in price table. */
export interface ModelCatalogue {
  /** Always answers: a model that nobody knows has neither vendor nor price. */
  get(name: string): Model
  /** The names that the configuration declares itself. */
  readonly declared: readonly string[]
}
