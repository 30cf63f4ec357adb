import {
  channelHealth,
  channelHealthQuery,
  channelHealthSchema,
} from '../../management/channels/channel-health.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Channel health`. */
export const channelHealthEndpoint = defineEndpoint({
  method: 'GET',
  path: '/api/channel/health',
  area: 'management',
  access: 'admin',
  summary: 'State, last error and last hour of each channel, as this node or all nodes see them',
  query: channelHealthQuery,
  errorStatuses: [400],
  responseBody: channelHealthSchema,
  handle: ({ query, parts }) => channelHealth(parts, query),
})
