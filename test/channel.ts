import type { Channel } from '../src/domain/channel.ts'

/** A channel of the chat dialect that allows and limits nothing except as given. */
export function channelOf(fields: Partial<Channel>): Channel {
  return {
    name: 'upstream',
    protocols: ['chat'],
    baseUrl: 'http://127.0.0.1/v1',
    keys: ['key'],
    models: [],
    groups: ['default'],
    priority: 0,
    weight: 1,
    modelMapping: new Map(),
    allow: new Set(),
    disableStore: false,
    passThrough: false,
    headers: new Map(),
    rateLimit: { requests: 0, tokens: 0, windowMs: 60_000 },
    onClientGone: 'cancel',
    timeouts: { connect: 1, first_byte: 1, idle: 1, total: 1 },
    ...fields,
  }
}
