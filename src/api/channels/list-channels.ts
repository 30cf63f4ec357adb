import { channelPage, channelQuery, listChannels } from '../../management/channels/list-channels.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Channels`. */
export const listChannelsEndpoint = defineEndpoint({
  method: 'GET',
  path: '/api/channel/',
  area: 'management',
  access: 'admin',
  summary: 'The channels, without their keys',
  errorStatuses: [400],
  query: channelQuery,
  responseBody: channelPage,
  handle: ({ query, parts }) => listChannels(parts, query),
})
