import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { channelKeysSchema } from '../../src/management/channels/channel-keys.ts'
import { request } from './client.ts'

/** A key of a channel, masked. */
export type ChannelKey = z.output<typeof channelKeysSchema>[number]

/** The keys of a channel, requested again every `everyMs` milliseconds. */
export function channelKeysQuery(userId: number, channelId: number, everyMs: number) {
  return queryOptions({
    queryKey: [userId, 'channel-keys', channelId],
    queryFn: () => request<readonly ChannelKey[]>('GET', `/api/channel/${channelId}/keys`),
    refetchInterval: everyMs,
  })
}

/** Adds keys; `key` contains one key per line. */
export async function addChannelKeys(channelId: number, key: string): Promise<void> {
  await request('POST', `/api/channel/${channelId}/keys`, { key })
}

/** Retires a key, so that calls no longer use it, or uses it again. */
export async function setKeyState(channelId: number, id: string, state: 'works' | 'retired'): Promise<void> {
  await request('PUT', `/api/channel/${channelId}/keys`, { id, state })
}

export async function removeChannelKey(channelId: number, id: string): Promise<void> {
  await request('DELETE', `/api/channel/${channelId}/keys/${id}`)
}
