import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { channelHealthSchema } from '../../src/management/channels/channel-health.ts'
import { ApiError } from './api-error.ts'
import { requestIfChanged, type WithEntityTag } from './client.ts'

/** The state of the channels at the node that answered, and the node's clock in Unix seconds. */
export type NodeHealth = z.output<typeof channelHealthSchema>

/** The health of a channel as one node sees it; times are in Unix seconds. */
export type ChannelHealth = NodeHealth['items'][number]

/** The attempts at a channel in one minute; durations are null if no attempt succeeded. */
export type ChannelMinuteSums = NonNullable<ChannelHealth['minutes']>[number]

/** Whether a channel works, fails or is not used. */
export type Condition = ChannelHealth['condition']

/**
 * The last response. The next request names its version, so that the gateway sends the data again only after
 * a change.
 */
let last: { readonly userId: number; readonly answer: WithEntityTag<NodeHealth> } | undefined

/** The health of all channels, requested again every `everyMs` milliseconds while the page is visible. */
export function channelHealthQuery(userId: number, everyMs: number) {
  return queryOptions({
    queryKey: [userId, 'channel-health'],
    async queryFn() {
      const answer = await requestIfChanged(
        '/api/channel/health',
        last?.userId === userId ? last.answer : undefined,
      )
      last = { userId, answer }
      return answer.data
    },
    refetchInterval: everyMs,
    staleTime: 0,
    retry: (count, error) => count < 2 && error instanceof ApiError && error.isPassing,
  })
}
