import { z } from 'zod'
import {
  CACHE_SCOPES,
  type FileLocation,
  type OptionName,
  OPTIONS,
  type Options,
  SMTP_SECURITY,
} from '../domain/options.ts'
import { isAddressRange } from '../domain/ip-allow-list.ts'
import { parseListenAddress } from '../domain/listen-address.ts'
import {
  decimalSchema,
  durationSchema,
  type Field,
  flagSchema,
  integerSchema,
  listSchema,
  oneOfSchema,
  retentionSchema,
  scalarSchema,
  secretSchema,
  sectionSchema,
  sizeSchema,
  textSchema,
} from './fields.ts'
import {
  keepSchema,
  readBucket,
  refuseServerWithoutBucket,
  serverOfBucket,
  withServer,
} from './storage-fields.ts'
import { YamlScalar } from './yaml-node.ts'

const MEBIBYTE = 2 ** 20

const addressRange = textSchema('an address or CIDR such as 10.0.0.0/8', (given) =>
  isAddressRange(given) ? given : undefined,
)

const affinity = sectionSchema({
  enabled: flagSchema.default(true),
  most: integerSchema(1, 10_000_000).default(100_000),
  cache_key: flagSchema.default(true),
})

const cache = sectionSchema({
  ttl: retentionSchema.default(0),
  max_ttl: durationSchema.default(3_600_000),
  scope: oneOfSchema(CACHE_SCOPES).default('token'),
  most: sizeSchema(MEBIBYTE, MEBIBYTE * MEBIBYTE).default(1_000_000_000),
  price: decimalSchema({ maximum: 1 }).default({ digits: 0n, scale: 0 }),
})

const idempotency = sectionSchema({
  keep: retentionSchema.default(86_400_000),
  most_answer: sizeSchema(1024, 1024 * MEBIBYTE).default(32 * MEBIBYTE),
})

const fileStore: Field<FileLocation> = scalarSchema('an absolute path, or s3://BUCKET/PREFIX', ({ value }) =>
  typeof value === 'string' && value.startsWith('/') && !/[\0\r\n]/.test(value)
    ? { kind: 'folder', path: value }
    : readBucket(value),
)

const FILES_DEFAULTS = {
  store: { kind: 'folder', path: '' },
  keep: 30 * 86_400_000,
  most: 10_000_000_000,
} as const

const files = sectionSchema({
  store: fileStore.default(FILES_DEFAULTS.store),
  ...serverOfBucket,
  keep: keepSchema.default(FILES_DEFAULTS.keep),
  most: sizeSchema(MEBIBYTE, MEBIBYTE * MEBIBYTE).default(FILES_DEFAULTS.most),
})
  .superRefine(refuseServerWithoutBucket)
  .transform(({ store, keep, most, ...server }) => ({
    store: store.kind === 's3' ? withServer(store, server) : store,
    keep,
    most,
  }))
  .default(FILES_DEFAULTS)

const batches = sectionSchema({
  poll: durationSchema.default(10_000),
  poll_most: durationSchema.default(300_000),
  most: integerSchema(1, 10_000).default(100),
  parallel: integerSchema(1, 10_000).default(8),
})

const media = sectionSchema({
  allow_private_networks: flagSchema.default(false),
  max_bytes: sizeSchema(1, 1024 * MEBIBYTE).default(20 * MEBIBYTE),
  timeout: durationSchema.default(10_000),
})

const cors = sectionSchema({
  origins: z.preprocess(
    (given) => (given instanceof YamlScalar && given.value === '*' ? [given] : given),
    listSchema(
      textSchema('an origin such as https://app.example.com, without a path, or "*"', (given) =>
        given === '*' || isOrigin(given) ? given : undefined,
      ),
      'a list of origins, or "*"',
    ),
  ),
})

const websocket = sectionSchema({
  enabled: flagSchema.default(true),
  idle: durationSchema.default(900_000),
  age: durationSchema.default(3_600_000),
  ping: durationSchema.default(30_000),
})

const MAIL_FROM = /^[^\r\n]*[^\s@]@[^\s@]+$/

const smtp = sectionSchema({
  host: textSchema('the name or address of a mail server', (given) =>
    /^[\w.:-]+$/.test(given) ? given : undefined,
  ),
  port: integerSchema(1, 65_535).default(587),
  security: oneOfSchema(SMTP_SECURITY).default('starttls'),
  user: textSchema('a name', (given) => given).default(''),
  password: secretSchema('a text', (given) => given).default(''),
  from: textSchema('an address such as sluice@example.com, or "Sluice <sluice@example.com>"', (given) =>
    MAIL_FROM.test(given.replace(/>$/, '')) && !/[\r\n]/.test(given) ? given : undefined,
  ),
}).superRefine(({ user, security }, ctx) => {
  const message = 'expected starttls or tls: user and password would be sent in clear'
  if (user !== '' && security === 'none') ctx.addIssue({ code: 'custom', path: ['security'], message })
})

// Browsers send origins in lower case and without the default port of the scheme.
function isOrigin(given: string): boolean {
  const url = URL.parse(given)
  return url !== null && /^[^*]+$/.test(url.host) && given === `${url.protocol}//${url.host}`
}

// Browsers resolve segments of dots, so that nothing below them would be reached.
function isBasePath(given: string): boolean {
  return given.length <= 200 && /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)+$/.test(given)
}

function isHttpOrigin(given: string): boolean {
  return /^https?:/.test(given) && isOrigin(given)
}

const FURTHER: Readonly<Record<Exclude<OptionType, ScalarRow['type']>, Field<unknown>>> = {
  addresses: listSchema(addressRange, 'a list of addresses and CIDRs'),
  bearer: secretSchema('printable characters without spaces', (given) =>
    /^[!-~]*$/.test(given) ? given : undefined,
  ).default(''),
  affinity,
  // Without this option no answers are cached; with an empty one, requests can ask for caching.
  cache: cache.optional(),
  batches,
  files,
  idempotency,
  media,
  cors,
  smtp: smtp.optional(),
  websocket,
  file: textSchema('the path of a file', (given) => given).default(''),
  listen: textSchema('HOST:PORT, such as 127.0.0.1:9100', (given) =>
    given === '' || parseListenAddress(given) ? given : undefined,
  ).default(''),
  path: textSchema('a path such as /ai, without / at its end', (given) =>
    given === '' || isBasePath(given) ? given : undefined,
  ).default(''),
  origin: textSchema('an origin such as https://ai.example.com, without a path', (given) =>
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
      return integerSchema(row.min, row.max)
    case 'size':
      return sizeSchema(row.min, row.max)
    case 'duration':
      return durationSchema
    case 'retention':
      return retentionSchema
    case 'decimal':
      return decimalSchema({ aboveZero: 'aboveZero' in row })
    case 'flag':
      return flagSchema
    case 'choice':
      return oneOfSchema(row.choices)
  }
}

/** Schema of the section `options`: `docs/configuration.md: Options`. */
export const optionsSchema = sectionSchema(
  Object.fromEntries(Object.entries(OPTIONS).map(([name, row]) => [name, fieldOf(row)])),
) as unknown as Field<Options>
