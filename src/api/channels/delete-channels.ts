import { z } from 'zod'
import { deleteChannels } from '../../management/channels/delete-channels.ts'
import { CHANNEL_ID } from '../../management/channels/find-channel.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Channels`. */
export const deleteChannelsEndpoint = defineEndpoint({
  method: 'POST',
  path: '/api/channel/batch',
  area: 'management',
  access: 'admin',
  summary: 'Removes channels; returns how many there were',
  errorStatuses: [409],
  body: CHANNEL_ID.body,
  responseBody: z.int(),
  handle: ({ body, parts }) => deleteChannels(parts, body.ids),
})
