import type { Decimal } from './decimal.ts'

const MEBIBYTE = 2 ** 20
const HOUR_MS = 3_600_000

/** An option of the gateway: the type, the bounds and the default of its value. */
type OptionRow =
  | ((
      | (Bounds & { readonly type: 'integer' })
      | { readonly type: 'decimal'; readonly aboveZero?: true; readonly default: Decimal }
      | { readonly type: 'flag'; readonly default: boolean }
      | { readonly type: 'choice'; readonly choices: readonly string[]; readonly default: string }
    ) & {
      /**
       * Section of the console's settings in which it appears; set for options that can be changed over HTTP.
       */
      readonly region?: SettingRegion
      /** Its key in one-api and related gateways, if that is different. */
      readonly key?: string
    })
  | (Bounds & { readonly type: 'size' })
  | { readonly type: 'duration' | 'retention'; readonly default: number }
  | {
      readonly type: 'addresses' | 'affinity' | 'cache' | 'idempotency' | 'media' | 'cors' | 'origin' | 'file'
    }
  /** A secret, which the audit log records without its value. */
  | { readonly type: 'bearer' }

interface Bounds {
  readonly min: number
  readonly max: number
  readonly default: number
}

/** Maximum quota, in US dollars; `docs/api.md: Limits`. */
export const MAX_QUOTA_USD = 1_000_000_000

/** Sections of the console's settings. */
export const SETTING_REGIONS = ['money', 'routing', 'retention'] as const

/** A section of the console's settings. */
export type SettingRegion = (typeof SETTING_REGIONS)[number]

/** Options below `options` in gateway.yaml. Times are in milliseconds, sizes in bytes. */
export const OPTIONS = {
  /** With this maximum, `MAX_QUOTA_USD` in quota units is a safe integer. */
  quota_per_unit: {
    type: 'integer',
    min: 1,
    max: 9_000_000,
    default: 500_000,
    region: 'money',
    key: 'QuotaPerUnit',
  },
  display: {
    type: 'choice',
    choices: ['USD', 'CNY', 'TOKENS'],
    default: 'USD',
    region: 'money',
    key: 'general_setting.quota_display_type',
  },
  usd_exchange_rate: {
    type: 'decimal',
    aboveZero: true,
    default: { digits: 73n, scale: 1 },
    region: 'money',
    key: 'USDExchangeRate',
  },
  token_stats: { type: 'flag', default: true, region: 'money', key: 'DisplayTokenStatEnabled' },
  max_user_tokens: {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 1000,
    region: 'money',
    key: 'token_setting.max_user_tokens',
  },
  /** Maximum size of a decoded request body. */
  body_limit: { type: 'size', min: 1024, max: 1024 * MEBIBYTE, default: 32 * MEBIBYTE },
  /** File with prices beneath those of gateway.yaml, relative to it; empty if there is none. */
  prices_file: { type: 'file' },
  unpriced_models: { type: 'choice', choices: ['refuse', 'free'], default: 'refuse', region: 'money' },
  /** Treatment of requests with a tool that has no price in any list. */
  unknown_tools: { type: 'choice', choices: ['pass', 'refuse'], default: 'pass' },
  /** Output tokens reserved at first for a stream, and for a request that does not state a maximum. */
  hold_tokens: { type: 'integer', min: 1, max: 100_000_000, default: 4096, region: 'routing' },
  /** Time for which a call waits for the holds of other calls; 0 refuses it at once. */
  hold_wait: { type: 'retention', default: 2_000 },
  /** Time for which the tokens of prompts are remembered, to bound those that continue them; 0 for none. */
  remember_prompts: { type: 'retention', default: HOUR_MS },
  /** Maximum number of prompts that are remembered. */
  remember_prompts_max: { type: 'integer', min: 1, max: 10_000_000, default: 100_000 },
  /** How calls of a session stay with the account that has their cache. */
  affinity: { type: 'affinity' },
  /** Which answers are kept for equal requests; undefined if the file does not have it, and nothing is kept. */
  cache: { type: 'cache' },
  /** Whether ends of models are known, and read from upstreams. */
  model_dates: { type: 'flag', default: true },
  pass_through: {
    type: 'flag',
    default: false,
    region: 'routing',
    key: 'global.pass_through_request_enabled',
  },
  /** Maximum number of further channels tried after a failure before the first byte. */
  retries: { type: 'integer', min: 0, max: 100, default: 2, region: 'routing', key: 'RetryTimes' },
  /** CIDRs of proxies whose X-Forwarded-For is trusted. */
  trusted_proxies: { type: 'addresses' },
  metrics_token: { type: 'bearer' },
  /** Whether the usage log keeps providers' words about failed calls. */
  error_details: { type: 'flag', default: true, region: 'retention' },
  usage_log_days: { type: 'integer', min: 1, max: 100_000, default: 90, region: 'retention' },
  /** Maximum number of refused calls that are kept; 0 keeps none. */
  refusals_kept: { type: 'integer', min: 0, max: 10_000_000, default: 100_000, region: 'retention' },
  /** Quota of a user, in US dollars, below which an alert is sent. */
  quota_low: { type: 'decimal', default: { digits: 5n, scale: 0 }, region: 'money' },
  /** Days for which half-hour sums of usage are kept. */
  slot_days: { type: 'integer', min: 1, max: 10_000, default: 100, region: 'retention' },
  /** Maximum number of concurrent requests. */
  max_calls: { type: 'integer', min: 1, max: 9_000, default: 8_000 },
  /** Maximum time for running calls to end in a graceful stop. */
  drain_timeout: { type: 'duration', default: 30_000 },
  /** Time for which converted responses are kept; 0 keeps none. */
  keep_responses: { type: 'retention', default: 0 },
  /** Time for which signatures of converted replies are kept; 0 keeps none. */
  keep_signatures: { type: 'retention', default: 24 * HOUR_MS },
  /** How answers to calls with an idempotency key are kept. */
  idempotency: { type: 'idempotency' },
  /** Maximum size of kept responses, signatures and answers of one user. */
  keep_bytes: { type: 'size', min: MEBIBYTE, max: MEBIBYTE * MEBIBYTE, default: 256 * MEBIBYTE },
  /** Whether the web console is served. */
  console: { type: 'flag', default: true },
  media: { type: 'media' },
  cors: { type: 'cors' },
  /** Origin under which browsers reach the gateway; if empty, that of each request. */
  public_url: { type: 'origin' },
} as const satisfies Record<string, OptionRow>

/** Name of an option. */
export type OptionName = keyof typeof OPTIONS

/** Whose calls share kept answers. */
export const CACHE_SCOPES = ['token', 'user', 'group'] as const

/** Cache of answers: `docs/answer-cache.md: Options`. Times are in milliseconds, sizes in bytes. */
export interface CacheOptions {
  /** How long answers are kept for models without a setting of their own; 0 keeps them only on request. */
  readonly ttl: number
  /** The longest time that a request may ask for. */
  readonly max_ttl: number
  readonly scope: (typeof CACHE_SCOPES)[number]
  /** Maximum size of all kept answers. */
  readonly most: number
  /** Part of the original charge that an answer from the cache costs, from 0 to 1. */
  readonly price: Decimal
}

/** Values of the types of options. */
interface Values {
  readonly integer: number
  readonly size: number
  readonly duration: number
  readonly retention: number
  readonly decimal: Decimal
  readonly flag: boolean
  readonly addresses: readonly string[]
  readonly bearer: string
  readonly origin: string
  readonly file: string
  readonly media: {
    readonly allow_private_networks: boolean
    readonly max_bytes: number
    readonly timeout: number
  }
  readonly affinity: {
    readonly enabled: boolean
    /** Maximum number of sessions whose account is remembered. */
    readonly most: number
    /** Whether requests of named sessions get a `prompt_cache_key`. */
    readonly cache_key: boolean
  }
  readonly cache: CacheOptions | undefined
  readonly idempotency: {
    /** Time for which answers are kept; 0 = idempotency keys are ignored. */
    readonly keep: number
    /** Maximum bytes of an answer that is kept. */
    readonly most_answer: number
  }
  /** Origins of browser pages that may call; `*` allows all. */
  readonly cors: { readonly origins: readonly string[] }
}

type ValueOf<Row> = Row extends { readonly choices: readonly (infer Choice)[] }
  ? Choice
  : Row extends { readonly type: infer Type extends keyof Values }
    ? Values[Type]
    : never

/** `docs/configuration.md: Options`. */
export type Options = { readonly [Name in OptionName]: ValueOf<(typeof OPTIONS)[Name]> }

type Settable = {
  [Name in OptionName]: (typeof OPTIONS)[Name] extends { readonly region: SettingRegion } ? Name : never
}[OptionName]

type KeyOf<Name extends OptionName> = (typeof OPTIONS)[Name] extends { readonly key: infer Key } ? Key : Name

/** Key of an option that can be changed over HTTP. */
export type SettingKey = { [Name in Settable]: KeyOf<Name> }[Settable]

type SettableRow = Extract<(typeof OPTIONS)[Settable], object>

/** An option that can be changed over HTTP. `name` is its name below `options` in gateway.yaml. */
export type Setting = SettableRow & { readonly name: Settable; readonly key: SettingKey }

/** A value of an option with choices that can be changed over HTTP. */
export type SettingChoice = Extract<SettableRow, { readonly choices: unknown }>['choices'][number]

/** The options that can be changed over HTTP. */
export const SETTINGS: readonly Setting[] = Object.entries<OptionRow>(OPTIONS).flatMap(([name, row]) =>
  'region' in row ? [{ key: name, ...row, name } as Setting] : [],
)
