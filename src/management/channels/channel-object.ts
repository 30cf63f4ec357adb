import { createHash } from 'node:crypto'
import { z } from 'zod'
import {
  type Channel,
  CHANNEL,
  type ChannelDefinition,
  type StoredChannel,
} from '../../domain/records/channel.ts'
import type { JsonObject } from '../../domain/json.ts'
import { answersOf, storedFields } from '../record-schemas.ts'
import { PLAIN_SETTINGS } from './channel-fields.ts'
import { channelType, typeAt, withoutVersion } from './channel-types.ts'
import { ALLOW_FLAGS, keyId, shownProxy } from './channel-definition.ts'
import type { DeclaredSettings } from '../parts.ts'

/** The first id of declared channels; ids of stored channels are lower. */
export const FIRST_DECLARED_ID = 1_000_000_000

const OWN = answersOf(CHANNEL.fields, 'admin')
const PLAIN = answersOf(PLAIN_SETTINGS, 'admin')

/** A channel in responses, without its keys; fields of tools that are unknown here are included. */
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
  version: z.string(),
})

/** A channel in the format of one-api and related gateways. */
export type ChannelObject = z.output<typeof channelSchema>

/** Converts a stored channel back to the fields that tools send. */
export function fieldsOf({ name, declared, status, family }: ChannelDefinition) {
  const allowed = declared['allow'] as readonly string[]
  const flags = Object.fromEntries(
    Object.entries(ALLOW_FLAGS).map(([flag, gated]) => [flag, allowed.includes(gated)]),
  )
  const { proxy } = declared
  const setting = {
    ...(family['setting'] as JsonObject),
    ...(typeof proxy === 'string' && { proxy: shownProxy(proxy) }),
    pass_through_body_enabled: declared['pass_through'],
  }
  const settings = {
    ...(family['settings'] as JsonObject),
    ...flags,
    disable_store: declared['disable_store'],
  }
  return {
    ...family,
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

/** A stored channel in responses. */
export function storedObject(channel: StoredChannel): ChannelObject {
  return {
    ...fieldsOf(channel),
    ...OWN.answer(channel),
    key: '',
    channel_info: keysInfo(channel.keys, channelType(channel.family['type'] as number)?.provider),
    managed: false,
    managed_by: '',
    version: channel.version,
  }
}

/** A declared channel in responses. Header values are blanked, because they may be secrets. */
export function declaredObject(channel: Channel, by: DeclaredSettings['by']): ChannelObject {
  const { name, protocol, base_url, provider, keys, allow, model_mapping, headers } = channel
  const type = typeAt(protocol, base_url, provider)
  const declared = {
    ...channel,
    ...PLAIN.answer(channel),
    proxy: null,
    allow: [...allow],
    model_mapping: Object.fromEntries(model_mapping),
    headers: Object.fromEntries([...headers.keys()].map((header) => [header, ''])),
  } as unknown as JsonObject
  const own = { ...CHANNEL.defaults, id: declaredId(name), name }
  const family = { type: type?.type ?? 0, base_url: withoutVersion(base_url, type) }
  return {
    ...fieldsOf({ ...own, declared, keys, family }),
    ...OWN.answer(own),
    key: '',
    channel_info: keysInfo(keys, provider),
    managed: true,
    managed_by: by,
    // Empty, because a declared channel is changed in the file.
    version: '',
  }
}

/** The id of a declared channel: a hash of its name, so that it survives restarts. */
export function declaredId(name: string): number {
  return FIRST_DECLARED_ID + createHash('sha256').update(name).digest().readUIntBE(0, 6)
}

function keysInfo(
  keys: readonly string[],
  provider: Parameters<typeof keyId>[0],
): ChannelObject['channel_info'] {
  const ids = keys.map((key) => keyId(provider, key)).filter((id) => id !== '')
  return {
    is_multi_key: keys.length > 1,
    multi_key_size: keys.length > 1 ? keys.length : 0,
    ...(ids.length > 0 && { key_ids: ids }),
  }
}
