import { awsUrl } from '@sluice/wire/aws-domains'
import { z } from 'zod'
import { ALLOWABLE_FIELDS, type AllowedField } from '@sluice/wire/upstream-settings'
import { CHANNEL_SETTINGS, type Channel } from '../domain/records/channel.ts'
import { PROTOCOL_NAMES } from '@sluice/wire/protocols'
import { findNearest } from '../domain/nearest.ts'
import { BEDROCK_KEY_FORMS, parseBedrockKey, parseServiceAccount } from '../domain/provider-keys.ts'
import { batchApiOf, UPSTREAM_PROTOCOLS } from '../domain/protocols.ts'
import { readBaseUrl } from './base-url.ts'
import { tierError } from '../upstreams/channel-tier.ts'
import { parseProxy } from '../upstreams/parse-proxy.ts'
import {
  ALREADY_REPORTED,
  credentialSchema,
  schemasOfDeclaredFields,
  dictionarySchema,
  durationSchema,
  type Field,
  integerSchema,
  kindOf,
  listSchema,
  nameSchema,
  oneOfSchema,
  oneOrListSchema,
  InvalidValue,
  scalarSchema,
  secretSchema,
  sectionSchema,
  textSchema,
} from './fields.ts'
import { DEFAULT_GROUP, groupNameSchema } from './groups.ts'
import { rateLimitSchema } from './rate-limits.ts'
import { childOfNode, UnresolvedScalar, type YamlNode, YamlScalar } from './yaml-node.ts'

/** Headers of the connection or of the body, which an operator may not set. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const plainKey = credentialSchema('a key: printable characters without spaces')

// The form of the key is checked later, when the provider is known.
const serviceAccount = secretSchema("the JSON of a service account's key, or file: and its path", (given) =>
  given.trim().startsWith('{') ? given : undefined,
)

const baseUrl = textSchema('an http:// or https:// URL', (given) => {
  const read = readBaseUrl(given)
  return 'url' in read ? read.url : new InvalidValue(read.expected)
})

// The address of a proxy may contain a password, so messages do not repeat it.
const proxy = secretSchema('http://USER:PASSWORD@HOST:PORT, or the same with socks5://', (given) =>
  parseProxy(given) ? given : undefined,
)

const protocols = oneOrListSchema(oneOfSchema(PROTOCOL_NAMES), 'a list of at least one protocol')

const weight = scalarSchema('a number from 0 to 1000000', ({ value }) => {
  const number = value === '' || typeof value === 'boolean' ? Number.NaN : Number(value)
  return number >= 0 && number <= 1_000_000 ? number : undefined
})

const headerValue = secretSchema('a header value: printable characters, no line breaks', (given) =>
  /^[\t -~\u{80}-\u{ff}]*$/u.test(given) ? given.trim() : undefined,
)

const headers: Field<ReadonlyMap<string, string>> = dictionarySchema(
  headerValue,
  'a mapping from header names',
)
  .superRefine((given, ctx) => {
    const seen = new Set<string>()
    for (const key of given.keys()) {
      const lower = key.toLowerCase()
      const refuse = (message: string): void => ctx.addIssue({ code: 'custom', path: [key], message })
      if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(key)) refuse('expected the name of a header')
      else if (RESERVED_HEADERS.has(lower)) refuse('expected a header that the gateway does not set itself')
      else if (seen.has(lower))
        refuse('expected this header once (names are the same in upper and lower case)')
      seen.add(lower)
    }
  })
  .transform((given) => new Map([...given].map(([key, value]) => [key.toLowerCase(), value])))

const allow = listSchema(
  oneOfSchema(ALLOWABLE_FIELDS),
  `a list out of ${ALLOWABLE_FIELDS.join(', ')}`,
).transform((given): ReadonlySet<AllowedField> => new Set(given))

const status = integerSchema(400, 599)

const statusMapping: Field<ReadonlyMap<number, number>> = dictionarySchema(
  status,
  'a mapping from statuses to statuses',
)
  .superRefine((given, ctx) => {
    for (const key of given.keys())
      if (!/^[45]\d\d$/.test(key))
        ctx.addIssue({ code: 'custom', path: [key], message: 'expected a status from 400 to 599' })
  })
  .transform((given) => new Map([...given].map(([key, value]) => [Number(key), value])))

const { default: usual } = CHANNEL_SETTINGS.fields.timeouts

const timeouts = sectionSchema({
  connect: durationSchema.default(usual.connect),
  first_byte: durationSchema.default(usual.first_byte),
  idle: durationSchema.default(usual.idle),
  total: durationSchema.default(usual.total),
})

/** Schema of an entry of the section `channels`: `docs/configuration.md: Channels`. */
export function channelSchema(groups: ReadonlySet<string>): Field<Channel> {
  const addressed = channelWith(groups, baseUrl, plainKey)
  const bedrock = channelWith(groups, baseUrl.optional(), plainKey)
  const vertex = channelWith(groups, baseUrl.optional(), serviceAccount)
  return z.unknown().transform((given, ctx): Channel => {
    const member = (name: string): YamlNode => childOfNode(given as YamlNode, name)
    const provider = member('provider')
    const named = provider instanceof YamlScalar ? provider.value : undefined
    const read = (named === 'vertex' ? vertex : named === 'bedrock' ? bedrock : addressed).safeParse(given)
    if (!read.success) {
      for (const issue of read.error.issues) ctx.issues.push({ ...issue, input: undefined })
      return z.NEVER
    }
    for (const { path, message } of providerIssues(read.data, (name) => kindOf(member(name))))
      ctx.issues.push({ code: 'custom', path: [...path], message, input: undefined })
    return { ...read.data, base_url: addressOf(read.data) }
  })
}

/**
 * A schema for channels, given the schemas for their base URL and their keys, which depend on the provider. The base
 * URL of a channel is undefined if it follows from other settings.
 */
function channelWith(
  groups: ReadonlySet<string>,
  address: Field<string> | z.ZodOptional<Field<string>>,
  key: Field<string>,
): Field<Channel> {
  const shape = schemasOfDeclaredFields(CHANNEL_SETTINGS.fields, {
    protocol: protocols,
    base_url: address as Field<string>,
    proxy,
    keys: listSchema(key, 'a list of keys'),
    groups: listSchema(groupNameSchema(groups), 'a list of at least one group', 1).default([DEFAULT_GROUP]),
    weight,
    override,
    allow,
    headers,
    status_mapping: statusMapping,
    rate_limit: rateLimitSchema,
    timeouts,
  })
  return sectionSchema(shape)
}

/** The settings of a channel that depend on its provider; the base URL may be missing. */
type GivenProvider = Pick<
  Channel,
  | 'provider'
  | 'api_version'
  | 'region'
  | 'project'
  | 'location'
  | 'protocol'
  | 'keys'
  | 'service_tier'
  | 'websocket'
  | 'batches'
> & { readonly base_url?: string | undefined }

/** An error in a channel, with the path of the faulty setting. */
interface ProviderIssue {
  readonly path: readonly (string | number)[]
  readonly message: string
}

/** Settings that only certain providers support, with those providers. */
const OWNERS = {
  api_version: ['azure'],
  region: ['bedrock'],
  project: ['vertex'],
  location: ['vertex'],
} as const

/**
 * Errors in a channel's provider and in the settings that depend on it. `found` describes the value of a setting as it
 * is written.
 */
function providerIssues(given: GivenProvider, found: (setting: string) => string): ProviderIssue[] {
  const { provider, protocol, keys } = given
  const issues: ProviderIssue[] = []
  const add = (path: readonly (string | number)[], message: string): number => issues.push({ path, message })
  for (const [field, owners] of Object.entries(OWNERS)) {
    if (given[field as keyof typeof OWNERS] !== null && !owners.some((owner) => owner === provider))
      add([field], `only channels with provider ${owners.join(' or ')} have this key`)
  }
  if (provider === 'bedrock' && given.region === null) add(['region'], 'expected the name of a region')
  if (given.base_url === undefined) {
    const unknown =
      provider === 'bedrock' && given.region !== null && regionError(given.region, found('region'))
    if (unknown) add(['region'], unknown)
    const unplaced =
      provider === 'vertex' && given.location !== null && locationError(given.location, found('location'))
    if (unplaced) add(['location'], unplaced)
  }
  const spoken =
    provider === 'generic'
      ? PROTOCOL_NAMES
      : PROTOCOL_NAMES.filter((name) => UPSTREAM_PROTOCOLS[name].providers.includes(provider))
  for (const one of protocol.filter((one) => !spoken.includes(one)))
    add(['protocol'], `expected ${spoken.join(', ')} with provider ${provider}, found ${one}`)
  const noTier =
    given.service_tier === null ? undefined : tierError(given, given.service_tier, found('service_tier'))
  if (noTier !== undefined) add(['service_tier'], noTier)
  if (given.websocket === true && !protocol.some((one) => UPSTREAM_PROTOCOLS[one].hasWebSockets))
    add(['websocket'], 'only channels with protocol responses have WebSockets')
  const canBatch = protocol.some((one) => batchApiOf(provider, one))
  if (given.batches && !canBatch)
    add(['batches'], 'this provider or protocol has no batch API that the gateway uses')
  for (const [index, key] of keys.entries()) {
    const expected = KEY_FORMS[provider]?.(key)
    if (expected !== undefined) add(['keys', index], `expected ${expected}`)
  }
  return issues
}

/**
 * Checks the form of a key, by provider. Returns the expected form if the key is malformed, otherwise
 * undefined.
 */
const KEY_FORMS: Partial<Record<GivenProvider['provider'], (key: string) => string | undefined>> = {
  bedrock: (key) => (parseBedrockKey(key) ? undefined : BEDROCK_KEY_FORMS),
  vertex(key) {
    const parsed = parseServiceAccount(key)
    return 'expected' in parsed ? `${parsed.expected}, or file: and its path` : undefined
  },
}

/** The base URL of a valid channel: the declared one, otherwise that of its provider's region or location. */
function addressOf({ provider, base_url, region, location }: GivenProvider): string {
  if (base_url !== undefined) return base_url
  if (provider === 'bedrock') return awsUrl('bedrock-runtime', region ?? '')
  return provider === 'vertex' ? vertexUrl(location ?? 'global') : ''
}

function vertexUrl(location: string): string {
  if (location === 'global') return 'https://aiplatform.googleapis.com'
  if (location === 'us' || location === 'eu') return `https://aiplatform.${location}.rep.googleapis.com`
  return `https://${location}-aiplatform.googleapis.com`
}

/** Published regions of AWS by continent, with or without Bedrock. */
const AWS: Readonly<Record<string, string>> = {
  af: 'south-1',
  ap: 'east-1 east-2 northeast-1 northeast-2 northeast-3 south-1 south-2 southeast-1 southeast-2 southeast-3 southeast-4 southeast-5 southeast-6 southeast-7',
  ca: 'central-1 west-1',
  cn: 'north-1 northwest-1',
  eu: 'central-1 central-2 north-1 south-1 south-2 west-1 west-2 west-3',
  'eusc-de': 'east-1',
  il: 'central-1',
  me: 'central-1 south-1',
  mx: 'central-1',
  sa: 'east-1',
  us: 'east-1 east-2 west-1 west-2',
  'us-gov': 'east-1 west-1',
  'us-iso': 'east-1 west-1',
  'us-isob': 'east-1 west-1',
}

/** Published regions of Google Cloud by continent; they are also locations of Vertex AI. */
const GOOGLE: Readonly<Record<string, string>> = {
  africa: 'south1',
  asia: 'east1 east2 northeast1 northeast2 northeast3 south1 south2 southeast1 southeast2 southeast3',
  australia: 'southeast1 southeast2',
  europe: 'central2 north1 north2 southwest1 west1 west2 west3 west4 west6 west8 west9 west10 west12',
  me: 'central1 central2 west1',
  northamerica: 'northeast1 northeast2 south1',
  southamerica: 'east1 west1',
  us: 'central1 east1 east4 east5 east7 south1 west1 west2 west3 west4',
}

const REGIONS = namesOf(AWS)
const LOCATIONS = new Set(['global', 'us', 'eu', ...namesOf(GOOGLE)])

/** Describes the error of a name that is not a region of AWS; undefined if it is one. */
function regionError(region: string, found: string): string | undefined {
  return errorOf(region, REGIONS, 'the name of a region', found)
}

/** Describes the error of a name that is not a location of Vertex AI; undefined if it is one. */
function locationError(location: string, found: string): string | undefined {
  return errorOf(location, LOCATIONS, 'a location', found)
}

// The message mentions base_url, because a region newer than this table can still be used by its address.
function errorOf(
  name: string,
  known: ReadonlySet<string>,
  expected: string,
  found: string,
): string | undefined {
  if (known.has(name)) return undefined
  const near = findNearest(name, known)
  return `expected ${expected}${near === undefined ? '' : `, such as ${near}`}, found ${found}; one that is newer needs base_url`
}

function namesOf(areas: Readonly<Record<string, string>>): ReadonlySet<string> {
  return new Set(
    Object.entries(areas).flatMap(([area, places]) => places.split(' ').map((place) => `${area}-${place}`)),
  )
}

/** Request members that an operator must not change, because they determine the call or its cost. */
const RESERVED: ReadonlySet<string> = new Set(['model', 'stream', 'n', 'messages', 'input', 'contents'])

/** Reads any JSON value and returns it as text. */
const json: Field<string> = z.unknown().transform((given, ctx): string => {
  const written = jsonOf(given as YamlNode)
  if (written !== undefined) return written
  ctx.issues.push({ code: 'custom', message: ALREADY_REPORTED, input: undefined })
  return z.NEVER
})

const members = dictionarySchema(json, 'a mapping from names of members').superRefine((given, ctx) => {
  for (const key of given.keys()) if (RESERVED.has(key)) ctx.addIssue({ ...reserved, path: [key] })
})

const reserved = {
  code: 'custom',
  message: 'expected a member that the gateway does not set itself',
} as const

const removed = nameSchema('the name of a member').refine((given) => !RESERVED.has(given), reserved.message)

/** Changes that the gateway makes to the request bodies of a channel. `docs/configuration.md: Channels`. */
const override: Field<Channel['override']> = sectionSchema({
  set: members,
  default: members,
  remove: listSchema(removed, 'a list of names of members'),
})

/** A number in JSON notation. Such a number is copied as written, so that all its digits are kept. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** The JSON text of a YAML node; undefined if it contains variables that are not set. */
function jsonOf(node: YamlNode): string | undefined {
  if (node === undefined) return 'null'
  if (node instanceof UnresolvedScalar) return undefined
  if (node instanceof YamlScalar)
    return typeof node.value === 'number' && NUMBER.test(node.source)
      ? node.source
      : JSON.stringify(node.value)
  if (Array.isArray(node)) return bracketed('[', (node as readonly YamlNode[]).map(jsonOf), ']')
  const texts = Object.entries(node).map(([key, value]) => {
    const written = jsonOf(value)
    return written === undefined ? undefined : `${JSON.stringify(key)}:${written}`
  })
  return bracketed('{', texts, '}')
}

function bracketed(open: string, texts: readonly (string | undefined)[], close: string): string | undefined {
  return texts.includes(undefined) ? undefined : `${open}${texts.join(',')}${close}`
}
