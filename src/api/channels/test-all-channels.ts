import { testAllBody, testAllChannels, testAllResult } from '../../management/channels/test-all-channels.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Test a channel`. */
export const testAllChannelsEndpoint = defineEndpoint({
  method: 'POST',
  path: '/api/channel/test/all',
  area: 'management',
  access: 'admin',
  summary: 'Tests channels, none with a request that costs a picture or speech',
  errorStatuses: [404],
  body: testAllBody,
  responseBody: testAllResult,
  handle: ({ user, body, parts }) => testAllChannels(parts, body, user),
})
