import { z } from 'zod'
import type { Json, JsonObject } from '../../domain/json.ts'
import {
  type Channel,
  CHANNEL,
  type ChannelDefinition,
  type StoredChannel,
} from '../../domain/records/channel.ts'
import { declaredId, FIRST_DECLARED_ID } from '../../domain/channel-id.ts'
import type { StoredConfiguration } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import type { Store } from '../../store/store.ts'
import { idFields } from '../input-fields.ts'
import type { AdministrationServices, DeclaredSettings, LiveSettings } from '../services.ts'
import { declareResponse, storedFields } from '../record-schemas.ts'
import { ALLOW_FLAGS, publicPartOfKey, proxyWithoutPassword } from './channel-definition.ts'
import { parseJsonObjectField, PLAIN_SETTINGS } from './channel-fields.ts'
import { channelType, typeOfDeclaredChannel, removeApiVersion } from './channel-types.ts'

const OWN = declareResponse(CHANNEL.fields, 'admin')
const PLAIN = declareResponse(PLAIN_SETTINGS, 'admin')

/**
 * A channel as responses show it, without its keys. Unknown fields that a management tool has stored are
 * included.
 */
export const channelSchema = z.looseObject({
  ...OWN.schema.shape,
  ...PLAIN.schema.shape,
  type: z.int(),
  protocol: z.array(z.string()),
  key: z.string(),
  base_url: z.string(),
  models: z.string(),
  group: z.string(),
  model_mapping: z.string(),
  header_override: z.string(),
  setting: z.string(),
  settings: z.string(),
  weight: z.number(),
  channel_info: z.object({
    is_multi_key: z.boolean(),
    multi_key_size: z.int(),
    key_ids: z.array(z.string()).optional(),
  }),
  managed: z.boolean(),
  managed_by: z.string(),
  drained: z.boolean().describe('Whether it gets no new calls while other channels can serve them'),
  version: z.string(),
})

/** A channel in the format of One API and related gateways. */
export type ChannelObject = z.output<typeof channelSchema>

/** Converts a stored channel back to the format of management tools. */
export function fieldsOfStoredChannel({ name, declared, status, family }: ChannelDefinition) {
  const allowed = declared['allow'] as readonly string[]
  const flags = Object.fromEntries(
    Object.entries(ALLOW_FLAGS).map(([flag, gated]) => [flag, allowed.includes(gated)]),
  )
  const { proxy } = declared
  const setting = {
    ...(family['setting'] as JsonObject),
    ...(typeof proxy === 'string' && { proxy: proxyWithoutPassword(proxy) }),
    pass_through_body_enabled: declared['pass_through'],
  }
  const settings = {
    ...(family['settings'] as JsonObject),
    ...flags,
    disable_store: declared['disable_store'],
  }
  const kept = Object.entries(family).filter(
    ([field, value]) => !OBJECT_FIELDS.has(field) || holdsObject(field, value),
  )
  return {
    ...Object.fromEntries(kept),
    name,
    type: family['type'] as number,
    protocol: [declared['protocol']].flat() as string[],
    base_url: family['base_url'] as string,
    status,
    models: (declared['models'] as readonly string[]).join(','),
    group: (declared['groups'] as readonly string[]).join(','),
    model_mapping: JSON.stringify(declared['model_mapping']),
    header_override: JSON.stringify(declared['headers']),
    setting: JSON.stringify(setting),
    settings: JSON.stringify(settings),
    ...PLAIN.answer(storedFields(PLAIN_SETTINGS, declared)),
    weight: (declared['weight'] ?? 0) as number,
  }
}

/**
 * Fields that earlier builds stored as they came. One that holds no JSON object has no effect, and is left out so that the
 * channel can be changed.
 */
const OBJECT_FIELDS: ReadonlySet<string> = new Set(['param_override', 'status_code_mapping'])

function holdsObject(field: string, value: Json): boolean {
  if (value !== null && typeof value !== 'string') return false
  try {
    parseJsonObjectField(field, value)
    return true
  } catch {
    return false
  }
}

/** A stored channel as responses show it. */
export function storedChannelObject(channel: StoredChannel, isDrained: boolean): ChannelObject {
  return {
    ...fieldsOfStoredChannel(channel),
    ...OWN.answer(channel),
    key: '',
    channel_info: keysInfo(channel.keys, channelType(channel.family['type'] as number)?.provider),
    managed: false,
    managed_by: '',
    drained: isDrained,
    version: channel.version,
  }
}

// A declared channel as responses show it. The values of headers are emptied, because they may be secrets.
function declaredObject(channel: Channel, by: DeclaredSettings['by'], isDrained: boolean): ChannelObject {
  const { name, protocol, base_url, provider, keys, allow, model_mapping, headers } = channel
  const type = typeOfDeclaredChannel(protocol, base_url, provider)
  const declared = {
    ...channel,
    ...PLAIN.answer(channel),
    proxy: null,
    allow: [...allow],
    model_mapping: Object.fromEntries(model_mapping),
    headers: Object.fromEntries([...headers.keys()].map((header) => [header, ''])),
  } as unknown as JsonObject
  const own = { ...CHANNEL.defaults, id: declaredId(name), name }
  const family = { type: type?.type ?? 0, base_url: removeApiVersion(base_url, type) }
  return {
    ...fieldsOfStoredChannel({ ...own, declared, keys, family }),
    ...OWN.answer(own),
    key: '',
    channel_info: keysInfo(keys, provider),
    managed: true,
    managed_by: by,
    drained: isDrained,
    // The version is empty, because a declared channel can only be changed in gateway.yaml.
    version: '',
  }
}

function keysInfo(
  keys: readonly string[],
  provider: Parameters<typeof publicPartOfKey>[0],
): ChannelObject['channel_info'] {
  const ids = keys.map((key) => publicPartOfKey(provider, key)).filter((id) => id !== '')
  return {
    is_multi_key: keys.length > 1,
    multi_key_size: keys.length > 1 ? keys.length : 0,
    ...(ids.length > 0 && { key_ids: ids }),
  }
}

export const CHANNEL_ID_SCHEMAS = idFields('channel', 'expected ids of channels, at least one')

/** A channel that is either stored in the database or declared by the configuration. */
export type FoundChannel = { readonly id: number; readonly name: string } & (
  | { readonly stored: StoredChannel }
  | { readonly declared: Channel }
)

type ChannelSources = Pick<AdministrationServices, 'store' | 'liveConfig'>

/** The channel with this id. Throws `not_found` if there is none. */
export async function findChannel({ store, liveConfig }: ChannelSources, id: number): Promise<FoundChannel> {
  const declared = declaredChannel(liveConfig, id)
  if (declared) return { id, name: declared.name, declared }
  const stored = await storedChannel(store, id)
  return { id, name: stored.name, stored }
}

/** All channels: first the stored ones, the oldest first, then the declared ones. */
export async function allChannels({ store, liveConfig }: ChannelSources): Promise<FoundChannel[]> {
  const { channels } = await store.read('storedConfiguration')
  return [
    ...channels.map((stored) => ({ id: stored.id, name: stored.name, stored })),
    ...liveConfig.declared.channels.map((declared) => {
      const { name } = declared
      return { id: declaredId(name), name, declared }
    }),
  ]
}

/** A stored or declared channel as responses show it. */
export function channelObject(
  found: FoundChannel,
  { declared: { by }, drained }: LiveSettings,
): ChannelObject {
  const isDrained = drained.has(found.id)
  return 'stored' in found
    ? storedChannelObject(found.stored, isDrained)
    : declaredObject(found.declared, by, isDrained)
}

/** All channels as responses show them: first the stored ones, then the declared ones. */
export async function listAllChannels(services: ChannelSources): Promise<ChannelObject[]> {
  return (await allChannels(services)).map((found) => channelObject(found, services.liveConfig))
}

/**
 * The stored channel with this id. Throws `managed_by_file` for a declared channel, which can only be changed
 * in gateway.yaml.
 */
export function editableChannel({ store, liveConfig }: ChannelSources, id: number): Promise<StoredChannel> {
  requireEditableChannel(liveConfig, id)
  return storedChannel(store, id)
}

/** Throws `managed_by_file` if this channel is declared, so that it cannot be changed over HTTP. */
export function requireEditableChannel(liveConfig: LiveSettings, id: number): void {
  const declared = declaredChannel(liveConfig, id)
  if (declared) throw declaredError(liveConfig, declared.name)
}

/** Throws `managed_by_file` if the configuration declares a channel with that name. */
export function requireUndeclaredChannelName(liveConfig: LiveSettings, name: string): void {
  if (liveConfig.declared.channels.some((one) => one.name === name)) throw declaredError(liveConfig, name)
}

function declaredError({ declared }: LiveSettings, name: string): GatewayError {
  const where =
    declared.by === 'environment' ? 'comes from a key in the environment' : 'is declared in gateway.yaml'
  return new GatewayError('managed_by_file', `the channel "${name}" ${where}, and can be changed there alone`)
}

function declaredChannel({ declared }: LiveSettings, id: number): Channel | undefined {
  return id < FIRST_DECLARED_ID ? undefined : declared.channels.find(({ name }) => declaredId(name) === id)
}

async function storedChannel(store: Pick<Store, 'read'>, id: number): Promise<StoredChannel> {
  return channelOf(await store.read('storedConfiguration'), id)
}

/** The stored channel with this id. Throws `not_found` if there is none. */
export function channelOf({ channels }: StoredConfiguration, id: number): StoredChannel {
  return channels.find((one) => one.id === id) ?? channelNotFound(id)
}

export function channelNotFound(id: number): never {
  throw new GatewayError('not_found', `there is no channel with the id ${id}`)
}
