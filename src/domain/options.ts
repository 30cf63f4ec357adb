import type { BucketLocation } from './bucket.ts'
import type { Decimal } from './decimal.ts'

const MEBIBYTE = 2 ** 20
const HOUR_MS = 3_600_000

/** Declaration of an option: the type, the bounds and the default of its value. */
type OptionRow =
  | ((
      | (Bounds & { readonly type: 'integer' })
      | { readonly type: 'decimal'; readonly aboveZero?: true; readonly default: Decimal }
      | { readonly type: 'flag'; readonly default: boolean }
      | { readonly type: 'choice'; readonly choices: readonly string[]; readonly default: string }
    ) & {
      /**
       * Section of the console's settings in which the option appears; only options that can be changed over
       * HTTP have one.
       */
      readonly region?: SettingsSection
      /** The option's key in One API and related gateways, if it is different there. */
      readonly key?: string
    })
  | (Bounds & { readonly type: 'size' })
  | { readonly type: 'duration' | 'retention'; readonly default: number }
  | {
      readonly type:
        | 'addresses'
        | 'affinity'
        | 'cache'
        | 'batches'
        | 'files'
        | 'idempotency'
        | 'media'
        | 'cors'
        | 'origin'
        | 'path'
        | 'file'
        | 'listen'
        | 'smtp'
        | 'websocket'
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
export const SETTINGS_SECTIONS = ['money', 'routing', 'retention'] as const

/** A section of the console's settings. */
export type SettingsSection = (typeof SETTINGS_SECTIONS)[number]

/** Options in the section `options` of gateway.yaml. Times are in milliseconds, sizes in bytes. */
export const OPTIONS = {
  /**
   * Quota units per US dollar. At most so many that `MAX_QUOTA_USD` in quota units is still a safe integer.
   */
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
  /** Maximum size of a decoded request body, in bytes. */
  body_limit: { type: 'size', min: 1024, max: 1024 * MEBIBYTE, default: 32 * MEBIBYTE },
  /**
   * Path of a file with prices for models that gateway.yaml does not price, relative to gateway.yaml; empty
   * if there is none.
   */
  prices_file: { type: 'file' },
  unpriced_models: { type: 'choice', choices: ['refuse', 'free'], default: 'refuse', region: 'money' },
  /**
   * What happens to requests that offer a provider's tool without a known price: pass them on or refuse them.
   */
  unknown_tools: { type: 'choice', choices: ['pass', 'refuse'], default: 'pass' },
  /**
   * Output tokens for which quota is reserved at first if the response is a stream or the request states no
   * maximum.
   */
  hold_tokens: { type: 'integer', min: 1, max: 100_000_000, default: 4096, region: 'routing' },
  /**
   * Milliseconds for which a call waits if quota is reserved by other calls and too little is left; 0 refuses
   * it at once.
   */
  hold_wait: { type: 'retention', default: 2_000 },
  /**
   * Milliseconds for which the token counts of prompts are remembered, to estimate prompts that continue
   * them; 0 remembers none.
   */
  remember_prompts: { type: 'retention', default: HOUR_MS },
  /** Maximum number of prompts that are remembered. */
  remember_prompts_max: { type: 'integer', min: 1, max: 10_000_000, default: 100_000 },
  /**
   * Whether and how calls of a session are kept on the provider account whose prompt cache has their prompt.
   */
  affinity: { type: 'affinity' },
  /**
   * Which answers are cached for equal requests; undefined if gateway.yaml has no such section, so that
   * nothing is cached.
   */
  cache: { type: 'cache' },
  /** Whether the gateway uses dates of model shutdowns, and reads them from upstreams. */
  model_dates: { type: 'flag', default: true },
  pass_through: {
    type: 'flag',
    default: false,
    region: 'routing',
    key: 'global.pass_through_request_enabled',
  },
  /**
   * Maximum number of other channels that are tried if a channel fails before the first byte of its response.
   */
  retries: { type: 'integer', min: 0, max: 100, default: 2, region: 'routing', key: 'RetryTimes' },
  /**
   * Milliseconds after which a streamed call that waits for an upstream gets its head, and from then on
   * keep-alives; 0 sends neither.
   */
  early_stream: { type: 'retention', default: 0 },
  /** CIDR ranges of proxies whose X-Forwarded-For header is trusted. */
  trusted_proxies: { type: 'addresses' },
  metrics_token: { type: 'bearer' },
  /** Address (`HOST:PORT`) that serves only health checks and metrics, of this node; empty for none. */
  admin_listen: { type: 'listen' },
  /** Whether several nodes of this machine share the port. */
  reuse_port: { type: 'flag', default: false },
  /** Whether the usage log stores providers' error messages for failed calls. */
  error_details: { type: 'flag', default: true, region: 'retention' },
  usage_log_days: { type: 'integer', min: 1, max: 100_000, default: 90, region: 'retention' },
  /** Maximum number of refused calls that are stored; 0 stores none. */
  refusals_kept: { type: 'integer', min: 0, max: 10_000_000, default: 100_000, region: 'retention' },
  /** Quota of a user, in US dollars, below which an alert is sent. */
  quota_low: { type: 'decimal', default: { digits: 5n, scale: 0 }, region: 'money' },
  /** Number of days for which half-hour sums of usage are stored. */
  slot_days: { type: 'integer', min: 1, max: 10_000, default: 100, region: 'retention' },
  /** Maximum number of requests in progress at the same time. */
  max_calls: { type: 'integer', min: 1, max: 9_000, default: 8_000 },
  /** Milliseconds for which a graceful stop waits for running calls to end. */
  drain_timeout: { type: 'duration', default: 30_000 },
  /** Milliseconds for which a response is stored if the gateway converts its protocol; 0 stores none. */
  keep_responses: { type: 'retention', default: 0 },
  /** Milliseconds for which the signatures of converted replies are stored; 0 stores none. */
  keep_signatures: { type: 'retention', default: 24 * HOUR_MS },
  /**
   * Milliseconds for which answers are kept for calls that repeat an idempotency key, and the maximum size of
   * such an answer in bytes.
   */
  idempotency: { type: 'idempotency' },
  /** Where and how long uploaded files and results of batches are kept, and the maximum size of all files of one user. */
  files: { type: 'files' },
  /** Bounds of batches. */
  batches: { type: 'batches' },
  /** Whether lines of batches that no channel can batch are made as calls, even if the client does not ask for it. */
  local_batches: { type: 'flag', default: false },
  /** Maximum size in bytes of all stored responses, signatures and answers of one user. */
  keep_bytes: { type: 'size', min: MEBIBYTE, max: MEBIBYTE * MEBIBYTE, default: 256 * MEBIBYTE },
  /** Whether the web console is served. */
  console: { type: 'flag', default: true },
  media: { type: 'media' },
  cors: { type: 'cors' },
  /** The server that sends mails to receivers of alerts; undefined without one. */
  smtp: { type: 'smtp' },
  /** WebSockets on which clients send requests of the Responses API. */
  websocket: { type: 'websocket' },
  /** Path such as `/ai` below which everything is served; empty for none. */
  base_path: { type: 'path' },
  /**
   * Origin (`https://HOST`) at which browsers reach the gateway, without the base path; if empty, the origin of each
   * request.
   */
  public_url: { type: 'origin' },
} as const satisfies Record<string, OptionRow>

export type OptionName = keyof typeof OPTIONS

/** Which calls may get each other's cached answers: those of the same token, user or group. */
export const CACHE_SCOPES = ['token', 'user', 'group'] as const

/**
 * Settings of the answer cache: `docs/answer-cache.md: Options`. Times are in milliseconds, sizes in bytes.
 */
export interface CacheOptions {
  /**
   * Milliseconds for which answers are cached for models without a setting of their own; with 0, they are
   * cached only if the request asks for it.
   */
  readonly ttl: number
  /** Maximum number of milliseconds for which a request may have its answer cached. */
  readonly max_ttl: number
  readonly scope: (typeof CACHE_SCOPES)[number]
  /** Maximum size in bytes of all cached answers together. */
  readonly most: number
  /** Charge for an answer from the cache, as a fraction of the original charge, from 0 to 1. */
  readonly price: Decimal
}

/** Where contents of files are kept: in a folder, or in a bucket. */
export type FileLocation =
  | {
      readonly kind: 'folder'
      /** Absolute path; empty for the folder `files` in `DATA_DIR`, which no other node has. */
      readonly path: string
    }
  | BucketLocation

/** The type of an option's value, by the name of its type in `OPTIONS`. */
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
  readonly path: string
  readonly file: string
  readonly listen: string
  /** Times are in milliseconds. */
  readonly websocket: {
    readonly enabled: boolean
    /** After which a socket without a running turn and without a message is closed. */
    readonly idle: number
    /** Maximum age of a socket. */
    readonly age: number
    /** Interval between two pings. */
    readonly ping: number
  }
  readonly media: {
    readonly allow_private_networks: boolean
    readonly max_bytes: number
    readonly timeout: number
  }
  readonly affinity: {
    readonly enabled: boolean
    /** Maximum number of sessions whose provider account is remembered. */
    readonly most: number
    /** Whether requests get a `prompt_cache_key` made from the name of their session, if they have one. */
    readonly cache_key: boolean
  }
  readonly cache: CacheOptions | undefined
  readonly idempotency: {
    /** How long answers are kept, in milliseconds; 0 ignores idempotency keys. */
    readonly keep: number
    /** Maximum size in bytes of an answer that is kept. */
    readonly most_answer: number
  }
  readonly files: {
    readonly store: FileLocation
    /** Milliseconds for which files are kept. */
    readonly keep: number
    /** Maximum size in bytes of all files of one user. */
    readonly most: number
  }
  readonly batches: {
    /** First and longest time in milliseconds between two looks at a batch of a provider. */
    readonly poll: number
    readonly poll_most: number
    /** Maximum number of a user's batches that have not ended. */
    readonly most: number
    /** Maximum number of lines that a node makes as calls at the same time. */
    readonly parallel: number
  }
  /** Origins of web pages that may call the API; `*` allows all. */
  readonly cors: { readonly origins: readonly string[] }
  readonly smtp: SmtpOptions | undefined
}

/** Ways to encrypt a connection to a mail server: after its greeting, from the start, or not at all. */
export const SMTP_SECURITY = ['starttls', 'tls', 'none'] as const

/** The server that sends mails: `docs/configuration.md: Alerts`. */
export interface SmtpOptions {
  readonly host: string
  readonly port: number
  readonly security: (typeof SMTP_SECURITY)[number]
  /** Empty if the server requires no user. */
  readonly user: string
  readonly password: string
  readonly from: string
}

type ValueOf<Row> = Row extends { readonly choices: readonly (infer Choice)[] }
  ? Choice
  : Row extends { readonly type: infer Type extends keyof Values }
    ? Values[Type]
    : never

/** Values of the options in gateway.yaml, by name: `docs/configuration.md: Options`. */
export type Options = { readonly [Name in OptionName]: ValueOf<(typeof OPTIONS)[Name]> }

type SettableOptionName = {
  [Name in OptionName]: (typeof OPTIONS)[Name] extends { readonly region: SettingsSection } ? Name : never
}[OptionName]

type KeyOf<Name extends OptionName> = (typeof OPTIONS)[Name] extends { readonly key: infer Key } ? Key : Name

/** Key under which an option can be changed over HTTP. */
export type SettingKey = { [Name in SettableOptionName]: KeyOf<Name> }[SettableOptionName]

type SettableRow = Extract<(typeof OPTIONS)[SettableOptionName], object>

/** An option that can be changed over HTTP. `name` is its name below `options` in gateway.yaml. */
export type Setting = SettableRow & { readonly name: SettableOptionName; readonly key: SettingKey }

/** An option that only gateway.yaml can set. The answer cache is set over HTTP as a whole. */
export type FileOptionName = Exclude<OptionName, SettableOptionName | 'cache'>

/** A value of an option that has a fixed set of choices and can be changed over HTTP. */
export type SettingChoice = Extract<SettableRow, { readonly choices: unknown }>['choices'][number]

/** The options that can be changed over HTTP. */
export const SETTINGS: readonly Setting[] = Object.entries<OptionRow>(OPTIONS).flatMap(([name, row]) =>
  'region' in row ? [{ key: name, ...row, name } as Setting] : [],
)
