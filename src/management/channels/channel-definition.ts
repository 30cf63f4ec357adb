import { ALLOWABLE_FIELDS, type AllowedField } from '@sluice/wire/upstream-settings'
import { PROTOCOL_NAMES } from '@sluice/wire/protocols'
import { parseBedrockKey, parseServiceAccount } from '../../domain/provider-keys.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import {
  CHANNEL,
  type Channel,
  type ChannelDefinition,
  type StoredChannel,
} from '../../domain/records/channel.ts'
import type { Field } from '../../domain/records/record.ts'
import { fitsInBytes, TEXT_BYTE_LIMITS } from '../../domain/text-length.ts'
import { GatewayError } from '../../errors.ts'
import { tooLongMessage } from '../input-fields.ts'
import { storedFields } from '../record-schemas.ts'
import {
  type ChannelFields,
  channelFields,
  type PartialChannelFields,
  parseJsonObjectField,
  GATEWAY_SET_FIELDS,
  PLAIN_SETTINGS,
  parseTextMapField,
} from './channel-fields.ts'
import { type ChannelType, channelType, KNOWN_TYPES, addApiVersion } from './channel-types.ts'

/** Names of the flags in `settings` that allow a request field, with that field. */
export const ALLOW_FLAGS: Readonly<Record<string, AllowedField>> = Object.fromEntries(
  ALLOWABLE_FIELDS.map((field) => [`allow_${field}`, field]),
)

/** Maximum characters of unknown fields that are stored with a channel. */
const MAX_EXTRA_CHARACTERS = 65_536

/**
 * Fields of a channel in requests of management tools that the gateway uses; all others are stored unchanged.
 */
const MAPPED_FIELDS = new Set([
  'name',
  'protocol',
  'models',
  'group',
  'model_mapping',
  'header_override',
  ...Object.keys(PLAIN_SETTINGS),
  'weight',
  'status',
  'setting',
  'settings',
])

/** The channel type with this number. Throws `invalid_request` if it is unknown. */
export function requireType(type: number): ChannelType {
  const known = channelType(type)
  if (known) return known
  throw new GatewayError('invalid_request', `type: expected one of ${KNOWN_TYPES}, found ${type}`)
}

/**
 * Converts a channel from the format of management tools to that of gateway.yaml: base URLs get their
 * version, comma-separated texts become lists, JSON texts become mappings. The result is validated by the
 * schema of gateway.yaml.
 */
export function channelDefinition(fields: ChannelFields, given: readonly string[]): ChannelDefinition {
  const type = requireType(fields.type)
  const { pass_through_body_enabled: passThrough, ...setting } = parseJsonObjectField(
    'setting',
    fields.setting,
  )
  const settings = parseJsonObjectField('settings', fields.settings)
  const provider = providerPart(type, { keys: given, other: textOf(fields['other']) })
  const { keys } = provider
  const address = addApiVersion(fields.base_url ?? '', type)
  const groups = listIn(fields.group)
  const declared: Record<string, Json> = {
    protocol: protocolOf(fields, type),
    ...(address === '' && type.provider ? {} : { base_url: address }),
    ...provider.declared,
    ...editsIn(setting, textOf(fields.param_override)),
    ...statusesIn(textOf(fields.status_code_mapping)),
    models: listIn(fields.models),
    groups: groups.length > 0 ? groups : ['default'],
    model_mapping: parseTextMapField('model_mapping', fields.model_mapping),
    headers: headersIn(fields.header_override),
    allow: Object.entries(ALLOW_FLAGS).flatMap(([name, gated]) =>
      flag('settings', settings, name) ? [gated] : [],
    ),
    disable_store: flag('settings', settings, 'disable_store'),
    pass_through: flag('setting', { pass_through_body_enabled: passThrough }, 'pass_through_body_enabled'),
  }
  for (const [name, value] of Object.entries(storedFields(PLAIN_SETTINGS, fields))) {
    const { type, default: usual }: Field = PLAIN_SETTINGS[name as keyof typeof PLAIN_SETTINGS]
    if (type.encode(value) !== type.encode(usual)) declared[name] = type.toJson(value) as Json
  }
  if (fields.weight) declared['weight'] = fields.weight
  const extra = Object.entries(extraFields(fields))
  const unbounded = extra.filter(
    ([name, value]) => typeof value !== 'string' || !Object.hasOwn(channelFields.shape, name),
  )
  const family = {
    ...Object.fromEntries(extra),
    base_url: fields.base_url ?? '',
    ...(provider.other !== undefined && { other: provider.other }),
    setting: withoutPassword(setting) as JsonObject,
    settings: Object.fromEntries(
      Object.entries(settings).filter(
        ([name]) => !Object.hasOwn(ALLOW_FLAGS, name) && name !== 'disable_store',
      ),
    ) as JsonObject,
  }
  if (JSON.stringify(unbounded).length > MAX_EXTRA_CHARACTERS) {
    throw new GatewayError(
      'invalid_request',
      `a channel may not have more than ${MAX_EXTRA_CHARACTERS} characters of other fields`,
    )
  }
  return { name: fields.name, declared, keys, status: fields.status ?? 1, family }
}

/**
 * Splits a text into the keys of a channel of this type. Throws `invalid_request` if a key has the wrong
 * form.
 */
export function parseKeysOfType({ provider }: ChannelType, text: string | null | undefined): string[] {
  const given = text?.trim() ?? ''
  const keys = provider === 'vertex' && given !== '' ? serviceAccountsIn(given) : parseKeyLines(text)
  if (keys.every((key) => fitsInBytes(key, TEXT_BYTE_LIMITS.providerKey))) return keys
  throw new GatewayError('invalid_request', `key: ${tooLongMessage(TEXT_BYTE_LIMITS.providerKey)} a key`)
}

/** The keys in a text, one per line. Throws `invalid_request` if a nonempty text contains none. */
export function parseKeyLines(text: string | null | undefined): string[] {
  const given = text ?? ''
  const keys = given
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  if (keys.length === 0 && given !== '') {
    throw new GatewayError('invalid_request', 'key: expected at least one key, one a line')
  }
  return [...new Set(keys)]
}

/** The protocol that the channel states, otherwise the one of its type. */
function protocolOf({ protocol }: ChannelFields, type: ChannelType): string | readonly string[] {
  const [first, ...others] = typeof protocol === 'string' ? [protocol] : (protocol ?? [])
  if (first !== undefined) return others.length > 0 ? [first, ...others] : first
  if (type.protocol) return type.protocols ?? type.protocol
  throw new GatewayError(
    'invalid_request',
    `protocol: expected what the upstream of a channel of type ${type.type} speaks: ${PROTOCOL_NAMES.join(', ')}, or a list of them`,
  )
}

/**
 * Reads the proxy, the test interval and the changes to requests from what a management tool sent. Values of
 * `setting` that are not texts are ignored.
 */
function editsIn(setting: Record<string, unknown>, override: string): Record<string, Json> {
  const proxy = textOf(setting['proxy'])
  const systemPrompt = textOf(setting['system_prompt'])
  const probe = textOf(setting['probe'])
  const set = parseJsonObjectField('param_override', override)
  const isPlain = Object.keys(set).length > 0 && !Object.hasOwn(set, 'operations')
  return {
    ...(proxy !== '' && { proxy }),
    ...(systemPrompt !== '' && { system_prompt: systemPrompt }),
    ...(probe !== '' && { probe }),
    ...(isPlain && { override: { set: set as JsonObject } }),
  }
}

// Hides the proxy's password in the fields of management tools, which are stored unencrypted. The complete
// proxy URL is a declared setting, and is encrypted with the keys.
function withoutPassword(setting: Record<string, unknown>): Record<string, unknown> {
  const { proxy } = setting
  return typeof proxy === 'string' ? { ...setting, proxy: proxyWithoutPassword(proxy) } : setting
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.trim() : ''
}

function extraFields(fields: ChannelFields): Record<string, Json> {
  const others = Object.entries(fields).filter(
    ([name, value]) => value !== undefined && !MAPPED_FIELDS.has(name) && !GATEWAY_SET_FIELDS.has(name),
  )
  return Object.fromEntries(others) as Record<string, Json>
}

function listIn(text: string | null | undefined): string[] {
  const names = (text ?? '').split(',').map((name) => name.trim())
  return [...new Set(names.filter((name) => name !== ''))]
}

function headersIn(text: string | null | undefined): Record<string, string> {
  const headers = parseTextMapField('header_override', text)
  for (const [name, value] of Object.entries(headers)) {
    if (!/\{(?:api_key|client_header:)/.test(value)) continue
    throw new GatewayError(
      'invalid_request',
      `header_override: ${name}: placeholders are not supported; expected a fixed value (the channel's key is sent without a header of yours, and no header of a client is sent upstream)`,
    )
  }
  return headers
}

function flag(field: string, object: Record<string, unknown>, name: string): boolean {
  const value = object[name] ?? false
  if (typeof value === 'boolean') return value
  throw new GatewayError('invalid_request', `${field}: expected true or false for ${name}`)
}

/**
 * A new channel with the given fields. Throws `invalid_request` if its type requires a key and it has none.
 */
export function newChannel(given: PartialChannelFields): ChannelDefinition {
  const fields = wholeChannel(given)
  const type = requireType(fields.type)
  const keys = parseKeysOfType(type, fields.key)
  if (keys.length === 0 && !type.keyless) {
    throw new GatewayError('invalid_request', 'key: expected at least one key, one a line')
  }
  return channelDefinition(fields, keys)
}

/** Checks that a new channel has a name and a type. Throws `invalid_request` otherwise. */
function wholeChannel(given: PartialChannelFields): ChannelFields {
  const { name, type } = given
  if (name !== undefined && type !== undefined) return { ...given, name, type }
  const missing = [
    ...(name === undefined ? ['name: expected a text'] : []),
    ...(type === undefined ? [`type: expected one of ${KNOWN_TYPES}`] : []),
  ]
  throw new GatewayError('invalid_request', missing.join('; '))
}

/** A channel as it will be stored, with placeholders for the columns that the database fills in. */
export function toStoredChannel(channel: ChannelDefinition): StoredChannel {
  return { ...CHANNEL.defaults, ...channel, id: 0, version: '' }
}

/** The part of a channel's definition that depends on its provider. */
interface ProviderPart {
  readonly declared: Readonly<Record<string, Json>>
  /** Keys in the form that gateway.yaml has. */
  readonly keys: readonly string[]
  /** The field `other` of management tools, which contains a version, a region or a location. */
  readonly other?: string
}

/**
 * Reads the part that depends on the provider from the format of management tools: `other` contains Azure's
 * API version or Vertex's location, and keys of Bedrock end with a region. Throws `invalid_request` if a key
 * or the location is invalid.
 */
function providerPart(
  { provider }: ChannelType,
  given: { readonly keys: readonly string[]; readonly other: string },
): ProviderPart {
  const { keys, other } = given
  if (provider === undefined) return { declared: {}, keys }
  switch (provider) {
    case 'azure':
      return { declared: { provider, ...(other !== '' && { api_version: other }) }, keys }
    case 'bedrock':
      return bedrockText(keys, other)
    case 'vertex': {
      const location = locationIn(other)
      return { declared: { provider, ...(location !== '' && { location }) }, keys }
    }
  }
}

/** Splits the key text of a Vertex channel, which is one service account or a JSON list of them. */
function serviceAccountsIn(text: string): string[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new GatewayError(
      'invalid_request',
      "key: expected the JSON of a service account's key, or a list of them",
    )
  }
  return [value].flat().map((account) => JSON.stringify(account))
}

/**
 * The part of a key that is not secret: a service account's e-mail address, or the id of an AWS key; empty
 * for other keys.
 */
export function publicPartOfKey(provider: Channel['provider'] | undefined, key: string): string {
  if (provider === 'vertex') {
    const account = parseServiceAccount(key)
    return 'email' in account ? account.email : ''
  }
  const parsed = provider === 'bedrock' ? parseBedrockKey(key) : undefined
  return parsed && 'aws' in parsed ? parsed.aws.accessKeyId : ''
}

const REGION = /^[a-z]{2,}(?:-[a-z]+)+-\d+$/
const BEDROCK_LINES = 'key: expected ID|SECRET|REGION or API_KEY|REGION, with a region such as eu-central-1'

// Reads keys of the form `ID|SECRET|REGION` or `API_KEY|REGION`, or without a region as in gateway.yaml.
function bedrockText(given: readonly string[], other: string): ProviderPart {
  const regions = new Set<string>()
  const keys = given.map((line) => {
    const parts = line.split('|')
    if (parts.length === 1) return line
    const region = (parts.pop() as string).trim()
    // The message does not show the text, because it may be the secret.
    if (!REGION.test(region)) throw new GatewayError('invalid_request', BEDROCK_LINES)
    regions.add(region)
    return parts.join(':')
  })
  if (regions.size > 1)
    throw new GatewayError('invalid_request', 'key: expected the same region in every key')
  const region = [...regions][0] ?? other
  return {
    declared: { provider: 'bedrock', ...(region !== '' && { region }) },
    keys,
    ...(region !== '' && { other: region }),
  }
}

// Reads a location, or a JSON object from models to locations. Only an object with nothing but a default is
// accepted.
function locationIn(other: string): string {
  if (!other.startsWith('{')) return other
  let value: unknown
  try {
    value = JSON.parse(other)
  } catch {
    value = undefined
  }
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
  const [first, ...more] = entries
  if (first?.[0] === 'default' && typeof first[1] === 'string' && more.length === 0) return first[1]
  throw new GatewayError('invalid_request', 'other: expected one location, such as europe-west4 or global')
}

/** Whether an entry of a `status_mapping` maps one error status to another; other entries are ignored. */
export function isMappedStatus(from: string, to: unknown): boolean {
  return isErrorStatus(from) && isErrorStatus(String(to))
}

/** Converts the `status_mapping` of a management tool to the format of gateway.yaml. */
function statusesIn(mapping: string): Record<string, Json> {
  const given = parseJsonObjectField('status_code_mapping', mapping)
  const entries = Object.entries(given).flatMap(([from, to]) =>
    isMappedStatus(from, to) ? [[from, Number(to)] as const] : [],
  )
  return entries.length > 0 ? { status_mapping: Object.fromEntries(entries) } : {}
}

function isErrorStatus(text: string): boolean {
  return /^[45]\d\d$/.test(text)
}

/** A proxy's URL without its password, for responses. */
export function proxyWithoutPassword(proxy: string): string {
  return proxy.replace(/^([^/@]*\/\/[^/@:]*):.*@/s, '$1:***@')
}

/**
 * If the sent proxy URL equals the stored one with its password hidden, returns the stored one; otherwise the
 * sent one.
 */
export function restoreMaskedProxy(sent: unknown, stored: unknown): unknown {
  return typeof stored === 'string' && sent === proxyWithoutPassword(stored) ? stored : sent
}
