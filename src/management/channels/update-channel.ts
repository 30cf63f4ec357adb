import type { z } from 'zod'
import type { ChannelDefinition } from '../../domain/stored-configuration.ts'
import { GatewayError } from '../../errors.ts'
import type { Actor } from '../authority.ts'
import { versionField, withPresent } from '../changed-meanwhile.ts'
import { type ChannelFields, channelFields, objectIn, someChannelFields } from './channel-fields.ts'
import { type ChannelObject, fieldsOf, storedObject } from './channel-object.ts'
import { channelText, keysOfType, requireType } from './channel-text.ts'
import { channelIdField, editableChannel, refuseDeclaredName } from './find-channel.ts'
import { meantProxy } from './shown-proxy.ts'
import type { AdministrationParts } from '../parts.ts'
import { readInput } from '../read-input.ts'
import { requireSecretsForNewAddress } from './secret-destination.ts'

/** A change of a channel: absent fields stay unchanged, and so do the keys where `key` is empty. */
export const channelChange = someChannelFields.extend({ id: channelIdField, version: versionField.nullish() })

/**
 * Changes a stored channel. Stored secrets do not go to another address, unless root asks. Resolves to the
 * changed channel when it is live.
 */
export async function updateChannel(
  parts: Pick<AdministrationParts, 'store' | 'liveConfig'>,
  { id, version, ...given }: z.output<typeof channelChange>,
  by: Actor,
): Promise<ChannelObject> {
  const { store, liveConfig } = parts
  const before = await editableChannel(parts, id)
  const sent = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const shown = fieldsOf(before)
  const fields = withStoredProxy(
    readInput(channelFields, { ...shown, ...sent, ...protocolOfNewType(shown, given) }),
    before,
  )
  const keys = keysOfType(requireType(fields.type), given.key)
  const channel = channelText(fields, keys.length > 0 ? keys : before.keys)
  requireSecretsForNewAddress(by, before, channel, {
    keys: keys.length > 0,
    headers: given.header_override !== undefined,
  })
  refuseDeclaredName(liveConfig, channel.name)
  const after = { ...before, ...channel }
  const next = await withPresent(
    () =>
      liveConfig.change(
        (stored) => ({ ...stored, channels: stored.channels.map((one) => (one.id === id ? after : one)) }),
        () => store.write('changeChannel', { id, channel, version: version ?? undefined }),
      ),
    async () => storedObject(await editableChannel(parts, id)),
  )
  if (next === null) throw new GatewayError('not_found', `there is no channel with the id ${id}`)
  return storedObject({ ...after, version: next })
}

/** The fields with the stored proxy, where it comes back as it was shown: without its password. */
function withStoredProxy(fields: ChannelFields, { declared }: ChannelDefinition): ChannelFields {
  const setting = objectIn('setting', fields.setting)
  if (setting['proxy'] === undefined) return fields
  const proxy = meantProxy(setting['proxy'], declared['proxy'])
  return { ...fields, setting: JSON.stringify({ ...setting, proxy }) }
}

/**
 * A new type brings its own protocol, unless the change states another: tools send back every field that they
 * were shown.
 */
function protocolOfNewType(
  shown: ReturnType<typeof fieldsOf>,
  { type, protocol }: Pick<z.output<typeof channelChange>, 'type' | 'protocol'>,
): { protocol?: undefined } {
  const isNewType = type !== undefined && type !== 0 && type !== shown.type
  const stated = protocol === undefined || protocol === null ? [] : [protocol].flat()
  return isNewType && (stated.length === 0 || String(stated) === String(shown.protocol))
    ? { protocol: undefined }
    : {}
}
