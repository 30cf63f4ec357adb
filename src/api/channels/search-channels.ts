import { channelPage, channelQuery, listChannels } from '../../management/channels/list-channels.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Channels`. */
export const searchChannels = defineEndpoint({
  method: 'GET',
  path: '/api/channel/search',
  area: 'management',
  access: 'admin',
  summary: 'Channels by a part of their name or address, by group and by model',
  errorStatuses: [400],
  query: channelQuery,
  responseBody: channelPage,
  handle: ({ query, parts }) => listChannels(parts, query),
})
