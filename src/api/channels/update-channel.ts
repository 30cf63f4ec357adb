import { shownChannelSchema } from '../../management/channels/shown-channel.ts'
import { channelChange, updateChannel } from '../../management/channels/update-channel.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Channels`. */
export const updateChannelEndpoint = defineEndpoint({
  method: 'PUT',
  path: '/api/channel/',
  area: 'management',
  access: 'admin',
  summary: 'Changes a channel; absent fields stay',
  errorStatuses: [404, 409],
  body: channelChange,
  responseBody: shownChannelSchema,
  handle: ({ user, body, parts }) => updateChannel(parts, body, user),
})
