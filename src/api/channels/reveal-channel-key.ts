import { z } from 'zod'
import { CHANNEL_ID } from '../../management/channels/find-channel.ts'
import { revealChannelKeys } from '../../management/channels/reveal-channel-keys.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Channels`. */
export const revealChannelKey = defineEndpoint({
  method: 'POST',
  path: '/api/channel/:id/key',
  area: 'management',
  access: 'root',
  limit: 'critical',
  cache: 'never',
  summary: 'The keys of a channel, one a line',
  errorStatuses: [409],
  params: CHANNEL_ID.path,
  responseBody: z.object({ key: z.string() }),
  handle: ({ params, parts }) => revealChannelKeys(parts, params.id),
})
