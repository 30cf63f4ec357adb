import { z } from 'zod'
import type { Options } from '../domain/settings.ts'
import { isAddressRange } from '../domain/ip-allow-list.ts'
import {
  decimal,
  duration,
  type Field,
  flag,
  integer,
  list,
  oneOf,
  retention,
  secret,
  section,
  size,
  text,
} from './fields.ts'
import { YamlScalar } from './yaml-node.ts'

const MEBIBYTE = 2 ** 20
const HOUR_MS = 3_600_000

/** A limit that keeps a billion times as much a safe integer. */
const MAX_QUOTA_PER_UNIT = 9_000_000

/** The default of `quota_per_unit`. */
export const DEFAULT_QUOTA_PER_UNIT = 500_000

const addressRange = text('an address or CIDR such as 10.0.0.0/8', (given) =>
  isAddressRange(given) ? given : undefined,
)

const media = section({
  allow_private_networks: flag.default(false),
  max_bytes: size(1, 1024 * MEBIBYTE).default(20 * MEBIBYTE),
  timeout: duration.default(10_000),
}).transform((given): Options['media'] => ({
  allowPrivateNetworks: given.allow_private_networks,
  maxBytes: given.max_bytes,
  timeoutMs: given.timeout,
}))

const cors = section({
  origins: z.preprocess(
    (given) => (given instanceof YamlScalar && given.value === '*' ? [given] : given),
    list(
      text('an origin such as https://app.example.com, without a path, or "*"', (given) =>
        given === '*' || isOrigin(given) ? given : undefined,
      ),
      'a list of origins, or "*"',
    ),
  ),
})

// Browsers send origins in lower case, without the scheme's default port.
function isOrigin(given: string): boolean {
  const url = URL.parse(given)
  return url !== null && /^[^*]+$/.test(url.host) && given === `${url.protocol}//${url.host}`
}

function isHttpOrigin(given: string): boolean {
  return /^https?:/.test(given) && isOrigin(given)
}

/** `docs/configuration.md: Options`. */
export const options: Field<Options> = section({
  quota_per_unit: integer(1, MAX_QUOTA_PER_UNIT).default(DEFAULT_QUOTA_PER_UNIT),
  display: oneOf(['USD', 'CNY', 'TOKENS']).default('USD'),
  usd_exchange_rate: decimal({ aboveZero: true }).default({ digits: 73n, scale: 1 }),
  token_stats: flag.default(true),
  max_user_tokens: integer(1, 1_000_000).default(1000),
  body_limit: size(1024, 1024 * MEBIBYTE).default(32 * MEBIBYTE),
  unpriced_models: oneOf(['refuse', 'free']).default('refuse'),
  unknown_tools: oneOf(['pass', 'refuse']).default('pass'),
  hold_tokens: integer(1, 100_000_000).default(4096),
  pass_through: flag.default(false),
  retries: integer(0, 100).default(2),
  trusted_proxies: list(addressRange, 'a list of addresses and CIDRs'),
  metrics_token: secret('printable characters without spaces', (given) =>
    /^[!-~]*$/.test(given) ? given : undefined,
  ).default(''),
  usage_log_days: integer(1, 100_000).default(90),
  quota_low: decimal().default({ digits: 5n, scale: 0 }),
  slot_days: integer(1, 10_000).default(100),
  max_calls: integer(1, 9_000).default(8_000),
  drain_timeout: duration.default(30_000),
  keep_responses: retention.default(0),
  keep_signatures: retention.default(24 * HOUR_MS),
  keep_bytes: size(MEBIBYTE, MEBIBYTE * MEBIBYTE).default(256 * MEBIBYTE),
  console: flag.default(true),
  media,
  cors,
  public_url: text('an origin such as https://ai.example.com, without a path', (given) =>
    given === '' || isHttpOrigin(given) ? given : undefined,
  ).default(''),
}).transform(
  (given): Options => ({
    quotaPerUnit: given.quota_per_unit,
    display: given.display,
    usdExchangeRate: given.usd_exchange_rate,
    tokenStats: given.token_stats,
    maxUserTokens: given.max_user_tokens,
    bodyLimit: given.body_limit,
    unpricedModels: given.unpriced_models,
    unknownTools: given.unknown_tools,
    holdTokens: given.hold_tokens,
    passThrough: given.pass_through,
    retries: given.retries,
    trustedProxies: given.trusted_proxies,
    metricsToken: given.metrics_token,
    usageLogDays: given.usage_log_days,
    quotaLow: given.quota_low,
    slotDays: given.slot_days,
    maxCalls: given.max_calls,
    drainTimeoutMs: given.drain_timeout,
    keepResponsesMs: given.keep_responses,
    keepSignaturesMs: given.keep_signatures,
    keepBytes: given.keep_bytes,
    console: given.console,
    media: given.media,
    cors: given.cors,
    publicUrl: given.public_url,
  }),
)
