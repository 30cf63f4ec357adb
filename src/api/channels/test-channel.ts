import { CHANNEL_ID } from '../../management/channels/find-channel.ts'
import { testChannel, testQuery, testResult } from '../../management/channels/test-channel.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Test a channel`. */
export const testChannelEndpoint = defineEndpoint({
  method: 'GET',
  hasEffect: true,
  path: '/api/channel/test/:id',
  area: 'management',
  access: 'admin',
  summary: 'Tests a channel with a request for one token',
  params: CHANNEL_ID.path,
  query: testQuery,
  responseBody: testResult,
  envelope: 'own',
  handle: ({ user, params, query, parts }) => testChannel(parts, { id: params.id, model: query.model }, user),
})
