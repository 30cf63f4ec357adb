import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { channelHealthSchema } from '../../src/management/channels/channel-health.ts'
import { ApiError } from './api-error.ts'
import { request } from './client.ts'

/** The state of the channels at the node that answered, and the node's clock in Unix seconds. */
export type NodeHealth = z.output<typeof channelHealthSchema>

/** The health of a channel as one node sees it; times are in Unix seconds. */
export type ChannelHealth = NodeHealth['items'][number]

/** The attempts of one minute; durations are null if none succeeded. */
export type ChannelMinute = ChannelHealth['minutes'][number]

/** The health of all channels, refreshed at intervals while the page is visible. */
export function channelHealthQuery(userId: number, everyMs: number) {
  return queryOptions({
    queryKey: [userId, 'channel-health'],
    queryFn: () => request<NodeHealth>('GET', '/api/channel/health'),
    refetchInterval: everyMs,
    staleTime: 0,
    retry: (count, error) => count < 2 && error instanceof ApiError && error.isPassing,
  })
}
