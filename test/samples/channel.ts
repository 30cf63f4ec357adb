import { type Channel, CHANNEL_SETTINGS } from '../../src/domain/records/channel.ts'

/** A channel of the chat dialect without limits and permissions except the given ones. */
export function channelOf(fields: Partial<Channel>): Channel {
  return {
    ...CHANNEL_SETTINGS.defaults,
    name: 'upstream',
    protocol: ['chat'],
    base_url: 'http://127.0.0.1/v1',
    keys: ['key'],
    models: [],
    groups: ['default'],
    timeouts: { connect: 1, first_byte: 1, idle: 1, total: 1 },
    ...fields,
  }
}
