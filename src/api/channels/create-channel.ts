import { z } from 'zod'
import { createChannels, newChannelBody } from '../../management/channels/create-channels.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Channels`. */
export const createChannel = defineEndpoint({
  method: 'POST',
  path: '/api/channel/',
  area: 'management',
  access: 'admin',
  summary: 'Creates a channel, or one for each of several keys',
  errorStatuses: [409],
  body: newChannelBody,
  responseBody: z.object({ ids: z.array(z.int()) }),
  handle: ({ body, parts }) => createChannels(parts, body),
})
