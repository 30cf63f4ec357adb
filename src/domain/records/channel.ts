import type { AllowedField } from '@sluice/wire/upstream-settings'
import type { ProtocolName } from '@sluice/wire/protocols'
import { NO_LIMIT, type RateLimit } from '../rate-limit.ts'
import type { JsonObject } from '../json.ts'
import { TEXT_BYTE_LIMITS } from '../text-length.ts'
import { durationType } from './duration.ts'
import {
  type FieldType,
  declaredNameType,
  flagType,
  jsonType,
  listType,
  mappingType,
  patternTextType,
  nullableType,
  oneOfType,
  plainTextType,
  integerType,
} from './field-types.ts'
import { declareRecord, type Row, type Values } from './record.ts'

/** Clouds whose channels need their own URLs and their own way to authenticate. */
export type ProviderName = 'azure' | 'bedrock' | 'vertex'

/**
 * Changes to request bodies of a channel. They apply to top-level members, named as in the upstream's
 * protocol.
 */
export interface Override {
  /** Values, as JSON texts, that replace those of the client. */
  readonly set: ReadonlyMap<string, string>
  /** Values, as JSON texts, for members that the client did not send. */
  readonly default: ReadonlyMap<string, string>
  readonly remove: readonly string[]
}

/** Timeouts of a request to an upstream, in milliseconds. */
interface Timeouts {
  readonly connect: number
  readonly first_byte: number
  readonly idle: number
  readonly total: number
}

const OPEN = { declared: true, audit: true } as const
/** Declaration of a setting that may contain credentials: responses never show its value. */
const HIDDEN = { ...OPEN, secret: 'held' } as const

const MODEL = declaredNameType('the name of a model')

const TIER = /^[a-z][a-z0-9_-]{0,31}$/i

const maybe = (pattern: RegExp, expected: string) =>
  ({ ...OPEN, type: nullableType(patternTextType(pattern, expected)), default: null }) as const

/** How a channel serves lines of batches. */
export type BatchUse = boolean | 'only'

const batchUseType: FieldType<BatchUse, string> = {
  ...jsonType<BatchUse>(),
  bounds: { enum: [true, false, 'only'] },
  expected: 'true, false or only',
}

/** Settings of a channel, as in gateway.yaml: `docs/configuration.md: Channels`. */
export const CHANNEL_SETTINGS = declareRecord('', {
  name: { ...OPEN, type: declaredNameType('a name for the channel') },
  /**
   * Protocols that the upstream speaks, at least one; all are used with the same keys and the same base URL.
   */
  protocol: { ...OPEN, type: jsonType<readonly ProtocolName[]>() },
  /**
   * How URLs are built and requests authenticated. `generic` sends the key in the header that the protocol
   * defines.
   */
  provider: {
    ...OPEN,
    type: oneOfType<'generic' | ProviderName>(
      ['generic', 'azure', 'bedrock', 'vertex'],
      'the name of a provider',
    ),
    default: 'generic',
  },
  /** Null for Azure's v1 API, which has no dated versions. */
  api_version: maybe(/^\d{4}-\d{2}-\d{2}(?:-preview)?$/, 'a version such as 2024-10-21'),
  region: maybe(/^[a-z]{2,}(?:-[a-z]+)+-\d+$/, 'the name of a region, such as eu-central-1'),
  /** Google Cloud project; null for the project of the service account. */
  project: { ...maybe(/^[a-z0-9][a-z0-9.:-]{0,99}$/, 'the id of a project'), edit: 'admin' },
  /** Location of Vertex AI; null means `global`. */
  location: maybe(/^[a-z]+(?:-[a-z]+\d+)?$/, 'a location such as europe-west4, us or global'),
  /** URL of the API, with its version and without a final slash: `https://api.example.com/v1`. */
  base_url: { ...HIDDEN, type: jsonType<string>() },
  /** URL of the proxy for connections to the upstream; may contain a password. */
  proxy: { ...HIDDEN, type: jsonType<string | null>(), default: null },
  /** Credentials, used in turn; empty if the upstream needs no authentication. */
  keys: { ...HIDDEN, type: jsonType<readonly string[]>() },
  models: { ...OPEN, type: listType(MODEL, 'a list of at least one model', 1) },
  groups: { ...OPEN, type: jsonType<readonly string[]>() },
  /** Channels with a higher priority are tried first. */
  priority: {
    ...OPEN,
    type: integerType('a whole number from -1000000 to 1000000', {
      minimum: -1_000_000,
      maximum: 1_000_000,
    }),
    default: 0,
    edit: 'admin',
  },
  /** Share of calls that the channel gets among channels of equal priority, relative to their weights. */
  weight: { ...OPEN, type: jsonType<number>(), default: 1 },
  /** The upstream's model name by the name that clients request. */
  model_mapping: {
    ...OPEN,
    type: mappingType(MODEL, 'a mapping from asked-for to upstream model names'),
    default: new Map(),
  },
  /** System prompt that is put before the client's own; empty for none. */
  system_prompt: { ...HIDDEN, type: plainTextType(), default: '' },
  override: {
    ...HIDDEN,
    type: jsonType<Override>(),
    default: { set: new Map(), default: new Map(), remove: [] },
  },
  allow: { ...OPEN, type: jsonType<ReadonlySet<AllowedField>>(), default: new Set() },
  disable_store: { ...OPEN, type: flagType, default: false },
  /**
   * The service tier that all requests to this channel state, whatever the client requests; `auto` leaves it
   * to the provider. Null sends what the client requests, if `allow` contains `service_tier`.
   */
  service_tier: {
    ...maybe(TIER, 'the name of a tier of service, such as flex, priority or auto'),
    edit: 'admin',
  },
  pass_through: { ...OPEN, type: flagType, default: false },
  /** Whether requests ask the provider why it did not find the conversation in its prompt cache. */
  cache_diagnostics: { ...OPEN, type: flagType, default: false, edit: 'admin' },
  /** Whether turns of WebSockets are sent over WebSockets of the provider; null decides by the address. */
  websocket: { ...OPEN, type: nullableType(flagType), default: null, edit: 'admin' },
  /**
   * Whether lines of batches are sent to the batch API of the provider; with `only`, the channel gets no calls. Null
   * decides by the address.
   */
  batches: { ...OPEN, type: nullableType(batchUseType), default: null, edit: 'admin' },
  /** Whether answers in the client's own dialect go through its codec, which mends faults of their form. */
  repair: { ...OPEN, type: flagType, default: false, edit: 'admin' },
  /** Headers that are added to each request; names in lower case. */
  headers: { ...HIDDEN, type: jsonType<ReadonlyMap<string, string>>(), default: new Map() },
  /** Maps statuses of the upstream's responses to the statuses as which the gateway treats them. */
  status_mapping: { ...OPEN, type: jsonType<ReadonlyMap<number, number>>(), default: new Map() },
  rate_limit: { ...OPEN, type: jsonType<RateLimit>(), default: NO_LIMIT },
  /** Milliseconds between test requests while the circuit breaker is open; null sends none. */
  probe: { ...OPEN, type: nullableType(durationType), default: null },
  /**
   * What happens when the client disconnects: `cancel` aborts the request; `drain` reads the response to its
   * end and charges its reported usage.
   */
  on_client_gone: { ...OPEN, type: oneOfType(['cancel', 'drain'], 'cancel or drain'), default: 'cancel' },
  timeouts: {
    ...OPEN,
    type: jsonType<Timeouts>(),
    default: { connect: 5_000, first_byte: 120_000, idle: 120_000, total: 900_000 },
  },
})

/** A configured upstream. */
export type Channel = Values<typeof CHANNEL_SETTINGS.fields> & {
  /**
   * Set for channels created over HTTP. The operator may not have approved their URLs, so these must not
   * point to a cloud's metadata service.
   */
  readonly isSetOverHttp?: true
  /** Set for channels that get no new calls while others can serve them. */
  readonly isDrained?: true
}

/** Providers that serve WebSockets for the Responses API, and recommend them. */
const WEB_SOCKET_HOSTS: ReadonlySet<string> = new Set(['api.openai.com', 'api.x.ai'])

/** Whether turns of WebSockets are sent to the channel over WebSockets. */
export function usesWebSockets({ websocket, protocol, base_url: baseUrl }: Channel): boolean {
  if (!protocol.includes('responses')) return false
  return websocket ?? WEB_SOCKET_HOSTS.has(new URL(baseUrl).hostname)
}

/** Providers whose batch APIs are used without a setting. */
const BATCH_HOSTS: ReadonlySet<string> = new Set([
  'api.openai.com',
  'api.anthropic.com',
  'generativelanguage.googleapis.com',
])

/** How a channel serves lines of batches. */
export function batchUseOf({
  batches,
  provider,
  base_url: baseUrl,
}: Pick<Channel, 'batches' | 'provider' | 'base_url'>): BatchUse {
  return batches ?? (provider === 'generic' && BATCH_HOSTS.has(new URL(baseUrl).hostname))
}

/** Changes to the bodies of a channel's requests. */
export type RequestBodyEdits = Pick<Channel, 'system_prompt' | 'override'>

/** Whether a channel changes the bodies of its requests. */
export function editsRequestBodies({
  system_prompt,
  override: { set, default: usual, remove },
}: RequestBodyEdits): boolean {
  return system_prompt !== '' || set.size + usual.size + remove.length > 0
}

/** Channels created over HTTP: `docs/administration.md: Channels`. */
export const CHANNEL = declareRecord('channels', {
  id: { type: integerType(), key: 'primary key' },
  /** Name of the channel, unique among the stored channels. */
  name: {
    type: plainTextType('a text', { 'x-max-bytes': TEXT_BYTE_LIMITS.plain }),
    edit: 'admin',
    isRequired: true,
    key: 'unique',
  },
  /** The settings as in gateway.yaml, except for name, keys and proxy. */
  declared: { type: jsonType<JsonObject>(), shown: false },
  /** Encrypted keys and proxy, one per line. */
  keys_cipher: { type: plainTextType(), secret: true, shown: false },
  /** Status of the channel: 1 enabled, 2 disabled. */
  status: { type: oneOfType([1, 2], '1 (enabled) or 2 (disabled)'), default: 1, edit: 'admin' },
  /**
   * Fields that management tools for related gateways store with a channel. They have no effect in this
   * gateway.
   */
  family: { type: jsonType<JsonObject>(), shown: false },
  /** Unix seconds at which the channel was created. */
  created_time: { type: integerType(), default: 0 },
  /** Unix seconds of the last test; 0 if there was none. */
  test_time: { type: integerType(), default: 0 },
  /** Duration of the last test in milliseconds. */
  response_ms: { type: integerType(), as: 'response_time', default: 0 },
})

/** A channel as set over HTTP. */
export type ChannelDefinition = Pick<
  StoredChannel,
  'name' | 'declared' | 'keys' | 'retired' | 'status' | 'family'
>

/** A key that the channel no longer uses but still stores. */
export interface RetiredKey {
  readonly key: string
  /** When the channel stopped using the key, in Unix seconds. */
  readonly since: number
}

/** A stored channel with its keys decrypted; `declared` includes its proxy. */
export type StoredChannel = Values<typeof CHANNEL.fields> & {
  readonly keys: readonly string[]
  /** Keys that are stored but not used; absent if there are none. */
  readonly retired?: readonly RetiredKey[]
  /** A hash of the channel's definition; tests of the channel do not change it. */
  readonly version: string
}

/** A channel as a database row. */
export type ChannelRow = Row<typeof CHANNEL.fields>
