import { z } from 'zod'
import type { Channel, ChannelDefinition, StoredChannel } from '../../domain/records/channel.ts'
import { GatewayError } from '../../errors.ts'
import { type Actor, roleCeiling } from '../authority.ts'
import { versionField, addCurrentObject, repeatIfChanged } from '../expected-version.ts'
import { MAX_DELETED_AT_ONCE, requireFewIds } from '../input-fields.ts'
import type { AdministrationServices } from '../services.ts'
import {
  channelDefinition,
  parseKeysOfType,
  restoreMaskedProxy,
  newChannel,
  requireType,
  toStoredChannel,
} from './channel-definition.ts'
import {
  type ChannelFields,
  type PartialChannelFields,
  parseJsonObjectField,
  partialChannelFields,
} from './channel-fields.ts'
import {
  CHANNEL_ID_SCHEMAS,
  channelNotFound,
  channelOf,
  channelObject,
  editableChannel,
  fieldsOfStoredChannel,
  findChannel,
  requireEditableChannel,
  requireUndeclaredChannelName,
  storedChannelObject,
} from './channel-object.ts'
import { type ShownChannel, channelWithTestCost } from './list-channels.ts'

/** Maximum number of channels that one request may create. */
const MAX_CHANNELS_PER_REQUEST = 1000

/** A channel to be created. Its fields are in `channel`, or at the top level beside `mode`. */
export const newChannelBody = partialChannelFields.extend({
  mode: z
    .enum(['single', 'batch', 'multi_to_single'], { error: 'expected single, batch or multi_to_single' })
    .default('single'),
  channel: partialChannelFields
    .meta({ required: ['name', 'type'], description: 'The fields, where they are not beside it' })
    .optional(),
})

/**
 * Creates a channel with all given keys; with mode `batch`, one channel with a numbered name for each key.
 * Throws `invalid_request` if gateway.yaml could not declare such a channel. Resolves to the ids when the
 * channels are in use.
 */
export async function createChannels(
  { store, liveConfig, nowMs }: AdministrationServices,
  { mode, channel, ...beside }: z.output<typeof newChannelBody>,
): Promise<{ ids: number[] }> {
  const single = newChannel(channel ?? beside)
  const channels = mode === 'batch' && single.keys.length > 1 ? numbered(single) : [single]
  for (const { name } of channels) requireUndeclaredChannelName(liveConfig, name)
  const created_time = Math.floor(nowMs() / 1000)
  const ids = await liveConfig.change(
    (stored) => ({ ...stored, channels: [...stored.channels, ...channels.map(toStoredChannel)] }),
    () => store.write('createChannels', { channels, created_time }),
  )
  return { ids }
}

function numbered(channel: ChannelDefinition): ChannelDefinition[] {
  if (channel.keys.length > MAX_CHANNELS_PER_REQUEST) {
    throw new GatewayError(
      'invalid_request',
      `key: expected at most ${MAX_CHANNELS_PER_REQUEST} keys in a batch`,
    )
  }
  return channel.keys.map((key, index) => ({ ...channel, name: `${channel.name}-${index + 1}`, keys: [key] }))
}

/** Changes of a channel. Absent fields stay unchanged; so do the keys if `key` is empty. */
export const channelChange = partialChannelFields.extend({
  id: CHANNEL_ID_SCHEMAS.id,
  version: versionField.nullish(),
})

/**
 * Changes a stored channel. Only root may make stored secrets be sent to another address. Resolves to the
 * changed channel when the change is in effect.
 */
export async function updateChannel(
  services: Pick<AdministrationServices, 'store' | 'liveConfig' | 'settings'>,
  { id, version, ...given }: z.output<typeof channelChange>,
  by: Actor,
): Promise<ShownChannel> {
  const { liveConfig } = services
  const shown = (channel: StoredChannel): ShownChannel =>
    channelWithTestCost(services, storedChannelObject(channel, liveConfig.drained.has(id)))
  const changed = await addCurrentObject(
    () =>
      replaceChannel(services, { id, version }, (before) => {
        const channel = applyChannelChange(before, given, by)
        requireUndeclaredChannelName(liveConfig, channel.name)
        return channel
      }),
    async () => shown(await editableChannel(services, id)),
  )
  return shown(changed)
}

/**
 * Replaces a stored channel with what `next` makes of it, again if another node changes it meanwhile. If `next` returns
 * undefined, nothing changes. Resolves to the channel when the change is in effect.
 */
export function replaceChannel(
  { store, liveConfig }: Pick<AdministrationServices, 'store' | 'liveConfig'>,
  { id, version }: { readonly id: number; readonly version?: string | null | undefined },
  next: (before: StoredChannel) => ChannelDefinition | undefined,
): Promise<StoredChannel> {
  return repeatIfChanged(version, async () => {
    requireEditableChannel(liveConfig, id)
    let write: () => Promise<StoredChannel>
    return liveConfig.change(
      (stored) => {
        const before = channelOf(stored, id)
        const channel = next(before)
        const after = channel ? { ...before, retired: [], ...channel } : before
        write = async () => {
          if (!channel) return before
          const change = { id, channel, version: version ?? before.version }
          const written = (await store.write('changeChannel', change)) ?? channelNotFound(id)
          return { ...after, version: written }
        }
        return { ...stored, channels: stored.channels.map((one) => (one.id === id ? after : one)) }
      },
      () => write(),
    )
  })
}

/**
 * Deletes stored channels and returns how many existed. Throws if one of them is declared in gateway.yaml, and
 * `batch_too_many` for more than 1,000 ids.
 */
export async function deleteChannels(
  { store, liveConfig }: AdministrationServices,
  ids: readonly number[],
): Promise<number> {
  requireFewIds(ids, MAX_DELETED_AT_ONCE, 'channels are removed')
  for (const id of ids) requireEditableChannel(liveConfig, id)
  const deleted = new Set(ids)
  return liveConfig.change(
    (stored) => ({ ...stored, channels: stored.channels.filter(({ id }) => !deleted.has(id)) }),
    () => store.write('deleteChannels', { ids: [...deleted] }),
  )
}

/** Whether a channel is to be drained, so that it gets no new calls. */
export const drainBody = z.object(
  { on: z.boolean({ error: 'expected true or false' }) },
  { error: 'expected an object with on' },
)

/**
 * Drains a channel, so that it gets no new calls while others can serve them, or makes it get new calls
 * again. Running calls continue. Resolves to the channel when the change is in effect.
 */
export async function drainChannel(
  services: Pick<AdministrationServices, 'store' | 'liveConfig' | 'settings'>,
  { id, on }: z.output<typeof drainBody> & { readonly id: number },
): Promise<ShownChannel> {
  const { store, liveConfig } = services
  const found = await findChannel(services, id)
  const entry = { section: 'drains', name: String(id), value: true } as const
  await liveConfig.change(
    (stored) => {
      const others = stored.entries.filter((one) => one.section !== entry.section || one.name !== entry.name)
      return { ...stored, entries: on ? [...others, entry] : others }
    },
    () => store.write('drainChannel', { id, name: found.name, on }),
  )
  return channelWithTestCost(services, channelObject(found, liveConfig))
}

/**
 * Name of every unsaved channel, because its own name may be missing, or belong to the channel that it
 * changes.
 */
const NAME = 'unsaved channel'

/** The fields of an unsaved channel. With an `id`, they are changes to that stored channel. */
export const draftChannelSchema = partialChannelFields.extend({ id: CHANNEL_ID_SCHEMAS.id.nullish() })

/** A channel that is tried before it is saved. */
export interface DraftChannel {
  readonly channel: Channel
  /** The model that the channel's tests should use; undefined if it states none. */
  readonly preferredModel: unknown
}

/**
 * Checks a channel as if it were to be saved, with the same rules for addresses and secrets, but does not
 * save it. A channel without a list of models gets `model` as its only one.
 */
export async function validateDraftChannel(
  services: Pick<AdministrationServices, 'store' | 'liveConfig'>,
  { id, ...given }: z.output<typeof draftChannelSchema>,
  model: string | null | undefined,
  by: Actor,
): Promise<DraftChannel> {
  const read =
    id === undefined || id === null
      ? newChannel({ ...given, name: NAME })
      : applyChannelChange(await editableChannel(services, id), given, by)
  const definition = { ...withModel(read, model), name: NAME }
  const channels = await services.liveConfig.preview((stored) => ({
    ...stored,
    channels: [...stored.channels.filter(({ name }) => name !== NAME), toStoredChannel(definition)],
  }))
  const channel = channels.get(NAME)
  if (!channel) throw new GatewayError('invalid_request', `gateway.yaml declares a channel named "${NAME}"`)
  return { channel, preferredModel: read.family['test_model'] }
}

function withModel(channel: ChannelDefinition, model: string | null | undefined): ChannelDefinition {
  const { models } = channel.declared
  const isEmpty = Array.isArray(models) && models.length === 0
  return isEmpty && model ? { ...channel, declared: { ...channel.declared, models: [model] } } : channel
}

/**
 * A stored channel with changed fields. Absent fields stay unchanged; so do the keys if `key` is empty.
 * Throws if stored secrets would be sent to another address, unless root makes the change.
 */
export function applyChannelChange(
  before: ChannelDefinition,
  given: PartialChannelFields,
  by: Actor,
): ChannelDefinition {
  const sent = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const shown = fieldsOfStoredChannel(before)
  const fields = withStoredProxy({ ...shown, ...sent, ...protocolOfNewType(shown, given) }, before)
  const keys = parseKeysOfType(requireType(fields.type), given.key)
  const read = channelDefinition(fields, keys.length > 0 ? keys : before.keys)
  const { base_url } = before.declared
  // An imported base URL may lack the version that is added to other base URLs; unless it changes, it stays
  // as it is.
  const isSame = fields.type === shown.type && fields.base_url === shown.base_url && base_url !== undefined
  // A retired key that is given again is used again.
  const retired = before.retired?.filter(({ key }) => !keys.includes(key)) ?? []
  const complete = { ...read, ...(retired.length > 0 && { retired }) }
  const channel = isSame ? { ...complete, declared: { ...read.declared, base_url } } : complete
  requireSecretsForNewAddress(by, before, channel, {
    keys: keys.length > 0,
    headers: given.header_override !== undefined,
  })
  return channel
}

/**
 * If the sent proxy URL equals the one that was shown, which hides the password, puts the stored proxy in its
 * place.
 */
function withStoredProxy(fields: ChannelFields, { declared }: ChannelDefinition): ChannelFields {
  const setting = parseJsonObjectField('setting', fields.setting)
  if (setting['proxy'] === undefined) return fields
  const proxy = restoreMaskedProxy(setting['proxy'], declared['proxy'])
  return { ...fields, setting: JSON.stringify({ ...setting, proxy }) }
}

/**
 * If a channel's type is changed, its protocol follows, unless the change states another one. Management
 * tools send all fields back, so a protocol that did not change does not count as stated.
 */
function protocolOfNewType(
  shown: ReturnType<typeof fieldsOfStoredChannel>,
  { type, protocol }: Pick<PartialChannelFields, 'type' | 'protocol'>,
): { protocol?: undefined } {
  const isNewType = type !== undefined && type !== 0 && type !== shown.type
  const stated = protocol === undefined || protocol === null ? [] : [protocol].flat()
  return isNewType && (stated.length === 0 || String(stated) === String(shown.protocol))
    ? { protocol: undefined }
    : {}
}

/**
 * Where a channel's secrets are sent: scheme, host and port of its base URL, or the provider and the settings
 * that determine its URLs; and the proxy. Every field that affects where secrets are sent must be included.
 */
function destinationOf({ declared }: ChannelDefinition): string {
  const address = declared['base_url']
  const origin = typeof address === 'string' ? (URL.parse(address)?.origin ?? address) : ''
  const { provider, region, location, proxy } = declared
  return JSON.stringify([origin, provider, region, location, proxy])
}

/** Which secrets of a channel the request itself contains. */
export interface SuppliedSecrets {
  readonly keys: boolean
  readonly headers: boolean
}

/**
 * Throws if a change would send stored secrets to a different destination. It is allowed if the request
 * contains the secrets itself, or if root makes it, who may read them anyway. Every operation that changes a
 * destination must call this first.
 */
export function requireSecretsForNewAddress(
  by: Actor,
  before: ChannelDefinition,
  after: ChannelDefinition,
  supplied: SuppliedSecrets,
): void {
  if (roleCeiling(by) === undefined || destinationOf(before) === destinationOf(after)) return
  if (before.keys.length > 0 && !supplied.keys) throw missingSecret('key', 'its keys')
  const hasHeaders = Object.keys(before.declared['headers'] ?? {}).length > 0
  if (hasHeaders && !supplied.headers) throw missingSecret('header_override', 'its headers')
}

function missingSecret(field: string, what: string): GatewayError {
  return new GatewayError(
    'role_too_low',
    `${field}: expected ${what} anew, as the channel gets another address; only root may change it without them`,
  )
}
