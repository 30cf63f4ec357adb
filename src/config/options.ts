import { z } from 'zod'
import { CACHE_SCOPES, type OptionName, OPTIONS, type Options } from '../domain/options.ts'
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

const addressRange = text('an address or CIDR such as 10.0.0.0/8', (given) =>
  isAddressRange(given) ? given : undefined,
)

const affinity = section({
  enabled: flag.default(true),
  most: integer(1, 10_000_000).default(100_000),
  cache_key: flag.default(true),
})

const cache = section({
  ttl: retention.default(0),
  max_ttl: duration.default(3_600_000),
  scope: oneOf(CACHE_SCOPES).default('token'),
  most: size(MEBIBYTE, MEBIBYTE * MEBIBYTE).default(1_000_000_000),
  price: decimal({ maximum: 1 }).default({ digits: 0n, scale: 0 }),
})

const idempotency = section({
  keep: retention.default(86_400_000),
  most_answer: size(1024, 1024 * MEBIBYTE).default(32 * MEBIBYTE),
})

const media = section({
  allow_private_networks: flag.default(false),
  max_bytes: size(1, 1024 * MEBIBYTE).default(20 * MEBIBYTE),
  timeout: duration.default(10_000),
})

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

// Browsers send origins in lower case and without the default port of the scheme.
function isOrigin(given: string): boolean {
  const url = URL.parse(given)
  return url !== null && /^[^*]+$/.test(url.host) && given === `${url.protocol}//${url.host}`
}

function isHttpOrigin(given: string): boolean {
  return /^https?:/.test(given) && isOrigin(given)
}

const FURTHER: Readonly<Record<Exclude<OptionType, ScalarRow['type']>, Field<unknown>>> = {
  addresses: list(addressRange, 'a list of addresses and CIDRs'),
  bearer: secret('printable characters without spaces', (given) =>
    /^[!-~]*$/.test(given) ? given : undefined,
  ).default(''),
  affinity,
  // Without this option no answers are cached; with an empty one, requests can ask for caching.
  cache: cache.optional(),
  idempotency,
  media,
  cors,
  file: text('the path of a file', (given) => given).default(''),
  origin: text('an origin such as https://ai.example.com, without a path', (given) =>
    given === '' || isHttpOrigin(given) ? given : undefined,
  ).default(''),
}

type OptionType = (typeof OPTIONS)[OptionName]['type']
type ScalarRow = Extract<(typeof OPTIONS)[OptionName], { readonly default: unknown }>

function fieldOf(row: (typeof OPTIONS)[OptionName]): Field<unknown> {
  return 'default' in row ? scalarField(row).default(() => row.default) : FURTHER[row.type]
}

function scalarField(row: ScalarRow): Field<unknown> {
  switch (row.type) {
    case 'integer':
      return integer(row.min, row.max)
    case 'size':
      return size(row.min, row.max)
    case 'duration':
      return duration
    case 'retention':
      return retention
    case 'decimal':
      return decimal({ aboveZero: 'aboveZero' in row })
    case 'flag':
      return flag
    case 'choice':
      return oneOf(row.choices)
  }
}

/** Schema of the section `options`: `docs/configuration.md: Options`. */
export const optionsSchema = section(
  Object.fromEntries(Object.entries(OPTIONS).map(([name, row]) => [name, fieldOf(row)])),
) as unknown as Field<Options>
