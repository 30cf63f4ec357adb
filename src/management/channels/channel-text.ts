import { ALLOWABLE_FIELDS, type AllowedField } from '@sluice/wire/upstream-settings'
import { PROTOCOL_NAMES } from '@sluice/wire/protocols'
import type { ChannelDefinition } from '../../domain/records/channel.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { isWithin, TEXT_BYTES } from '../../domain/text-bytes.ts'
import type { Field } from '../../domain/records/record.ts'
import { storedFields } from '../record-schemas.ts'
import { GatewayError } from '../../errors.ts'
import { withVersion } from './channel-address.ts'
import {
  channelFields,
  type ChannelFields,
  OWN_FIELDS,
  objectIn,
  PLAIN_SETTINGS,
  textsIn,
} from './channel-fields.ts'
import { parseRecord } from '@sluice/wire/json/record'
import { tooLong } from '../text-fields.ts'
import { providerText, serviceAccountsIn } from './provider-text.ts'
import { shownProxy } from './shown-proxy.ts'
import { statusesIn } from './status-text.ts'
import { type ChannelType, channelType, KNOWN_TYPES } from './channel-types.ts'

/** Flags in `settings`, and the request field that each of them allows. */
export const ALLOW_FLAGS: Readonly<Record<string, AllowedField>> = Object.fromEntries(
  ALLOWABLE_FIELDS.map((field) => [`allow_${field}`, field]),
)

/** Maximum number of characters of the unknown fields stored with a channel. */
const MAX_EXTRA_CHARACTERS = 65_536

/** Fields that have a meaning here; others are stored unchanged. */
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

/** The channel type with a number; throws `invalid_request` if it is unknown. */
export function requireType(type: number): ChannelType {
  const known = channelType(type)
  if (known) return known
  throw new GatewayError('invalid_request', `type: expected one of ${KNOWN_TYPES}, found ${type}`)
}

/**
 * Converts a channel from the format of tools to that of gateway.yaml: addresses get their version,
 * comma-separated texts become lists, JSON texts become mappings. The file's schema validates the result.
 */
export function channelText(fields: ChannelFields, given: readonly string[]): ChannelDefinition {
  const type = requireType(fields.type)
  const { pass_through_body_enabled: passThrough, ...setting } = objectIn('setting', fields.setting)
  const settings = objectIn('settings', fields.settings)
  const provider = providerText(type, { keys: given, other: textOf(fields['other']) })
  const { keys } = provider
  const address = withVersion(fields.base_url ?? '', type)
  const groups = listIn(fields.group)
  const declared: Record<string, Json> = {
    protocol: protocolOf(fields, type),
    ...(address === '' && type.provider ? {} : { base_url: address }),
    ...provider.declared,
    ...editsIn(setting, fields['param_override']),
    ...statusesIn(textOf(fields['status_code_mapping'])),
    models: listIn(fields.models),
    groups: groups.length > 0 ? groups : ['default'],
    model_mapping: textsIn('model_mapping', fields.model_mapping),
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

/** The keys in a text, for a channel of that type. Throws `invalid_request` if one has the wrong form. */
export function keysOfType({ provider }: ChannelType, text: string | null | undefined): string[] {
  const given = text?.trim() ?? ''
  const keys = provider === 'vertex' && given !== '' ? serviceAccountsIn(given) : keysIn(text)
  if (keys.every((key) => isWithin(key, TEXT_BYTES.providerKey))) return keys
  throw new GatewayError('invalid_request', `key: ${tooLong(TEXT_BYTES.providerKey)} a key`)
}

/** The keys in a text, one per line. Throws `invalid_request` if a nonempty text contains none. */
export function keysIn(text: string | null | undefined): string[] {
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

/** The protocol stated for the channel, or otherwise that of its type. */
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
 * Changes to requests, the proxy and the probe, as stated by tools; values that are not texts have no effect.
 */
function editsIn(setting: Record<string, unknown>, override: unknown): Record<string, Json> {
  const proxy = textOf(setting['proxy'])
  const systemPrompt = textOf(setting['system_prompt'])
  const probe = textOf(setting['probe'])
  const set = parseRecord(textOf(override)) ?? {}
  const isPlain = Object.keys(set).length > 0 && !Object.hasOwn(set, 'operations')
  return {
    ...(proxy !== '' && { proxy }),
    ...(systemPrompt !== '' && { system_prompt: systemPrompt }),
    ...(probe !== '' && { probe }),
    ...(isPlain && { override: { set: set as JsonObject } }),
  }
}

// The proxy itself is a declared setting, and is encrypted together with the keys.
function withoutPassword(setting: Record<string, unknown>): Record<string, unknown> {
  const { proxy } = setting
  return typeof proxy === 'string' ? { ...setting, proxy: shownProxy(proxy) } : setting
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.trim() : ''
}

function extraFields(fields: ChannelFields): Record<string, Json> {
  const others = Object.entries(fields).filter(
    ([name, value]) => value !== undefined && !MAPPED_FIELDS.has(name) && !OWN_FIELDS.has(name),
  )
  return Object.fromEntries(others) as Record<string, Json>
}

function listIn(text: string | null | undefined): string[] {
  const names = (text ?? '').split(',').map((name) => name.trim())
  return [...new Set(names.filter((name) => name !== ''))]
}

function headersIn(text: string | null | undefined): Record<string, string> {
  const headers = textsIn('header_override', text)
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
