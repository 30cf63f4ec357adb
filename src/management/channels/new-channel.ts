import { CHANNEL, type ChannelDefinition, type StoredChannel } from '../../domain/records/channel.ts'
import { GatewayError } from '../../errors.ts'
import type { ChannelFields, GivenFields } from './channel-fields.ts'
import { KNOWN_TYPES } from './channel-types.ts'
import { channelText, keysOfType, requireType } from './channel-text.ts'

/**
 * A new channel with the given fields. Throws `invalid_request` if its type requires a key and it has none.
 */
export function newChannel(given: GivenFields): ChannelDefinition {
  const fields = wholeChannel(given)
  const type = requireType(fields.type)
  const keys = keysOfType(type, fields.key)
  if (keys.length === 0 && !type.keyless) {
    throw new GatewayError('invalid_request', 'key: expected at least one key, one a line')
  }
  return channelText(fields, keys)
}

/** The fields of a channel; throws if its name or type is missing. */
function wholeChannel(given: GivenFields): ChannelFields {
  const { name, type } = given
  if (name !== undefined && type !== undefined) return { ...given, name, type }
  const missing = [
    ...(name === undefined ? ['name: expected a text'] : []),
    ...(type === undefined ? [`type: expected one of ${KNOWN_TYPES}`] : []),
  ]
  throw new GatewayError('invalid_request', missing.join('; '))
}

/** A channel as it would be stored, with placeholders for the columns that the store sets. */
export function unstored(channel: ChannelDefinition): StoredChannel {
  return { ...CHANNEL.defaults, ...channel, id: 0, version: '' }
}
