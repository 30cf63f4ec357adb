import { CHANNEL, type ChannelDefinition, type StoredChannel } from '../../domain/records/channel.ts'
import { GatewayError } from '../../errors.ts'
import { readInput } from '../read-input.ts'
import { channelFields } from './channel-fields.ts'
import { channelText, keysOfType, requireType } from './channel-text.ts'

/** A new channel of the given fields. Throws `invalid_request` where its type needs a key and it has none. */
export function newChannel(given: unknown): ChannelDefinition {
  const fields = readInput(channelFields, given)
  const type = requireType(fields.type)
  const keys = keysOfType(type, fields.key)
  if (keys.length === 0 && !type.keyless) {
    throw new GatewayError('invalid_request', 'key: expected at least one key, one a line')
  }
  return channelText(fields, keys)
}

/** A channel as it would be stored, with placeholders for the columns that the store sets. */
export function unstored(channel: ChannelDefinition): StoredChannel {
  return { ...CHANNEL.defaults, ...channel, id: 0, version: '' }
}
