import type { ChannelDefinition } from '../../domain/records/channel.ts'
import type { Actor } from '../authority.ts'
import { type ChannelFields, type GivenFields, objectIn } from './channel-fields.ts'
import { fieldsOf } from './channel-object.ts'
import { channelText, keysOfType, requireType } from './channel-text.ts'
import { requireSecretsForNewAddress } from './secret-destination.ts'
import { meantProxy } from './shown-proxy.ts'

/**
 * A stored channel with the given fields. Absent ones stay unchanged, and so do the keys if `key` is empty.
 * Throws if stored secrets would be sent to another address, unless root makes the change.
 */
export function changedChannel(before: ChannelDefinition, given: GivenFields, by: Actor): ChannelDefinition {
  const sent = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const shown = fieldsOf(before)
  const fields = withStoredProxy({ ...shown, ...sent, ...protocolOfNewType(shown, given) }, before)
  const keys = keysOfType(requireType(fields.type), given.key)
  const read = channelText(fields, keys.length > 0 ? keys : before.keys)
  const { base_url } = before.declared
  // An imported address may lack the version that is added to others.
  const isSame = fields.type === shown.type && fields.base_url === shown.base_url && base_url !== undefined
  const channel = isSame ? { ...read, declared: { ...read.declared, base_url } } : read
  requireSecretsForNewAddress(by, before, channel, {
    keys: keys.length > 0,
    headers: given.header_override !== undefined,
  })
  return channel
}

/** The fields with the stored proxy, if the sent one equals the shown one, which lacks the password. */
function withStoredProxy(fields: ChannelFields, { declared }: ChannelDefinition): ChannelFields {
  const setting = objectIn('setting', fields.setting)
  if (setting['proxy'] === undefined) return fields
  const proxy = meantProxy(setting['proxy'], declared['proxy'])
  return { ...fields, setting: JSON.stringify({ ...setting, proxy }) }
}

/**
 * A new type implies its own protocol unless the change states another one. Tools send back every field that
 * they were shown, so an unchanged protocol does not count.
 */
function protocolOfNewType(
  shown: ReturnType<typeof fieldsOf>,
  { type, protocol }: Pick<GivenFields, 'type' | 'protocol'>,
): { protocol?: undefined } {
  const isNewType = type !== undefined && type !== 0 && type !== shown.type
  const stated = protocol === undefined || protocol === null ? [] : [protocol].flat()
  return isNewType && (stated.length === 0 || String(stated) === String(shown.protocol))
    ? { protocol: undefined }
    : {}
}
