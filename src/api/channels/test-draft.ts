import { draftTest, testDraft, testResult } from '../../management/channels/test-channel.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Test a channel`. */
export const testDraftEndpoint = defineEndpoint({
  method: 'POST',
  path: '/api/channel/test',
  area: 'management',
  access: 'admin',
  summary: 'Tests a channel that is not saved with a request for one token',
  errorStatuses: [404, 409],
  body: draftTest,
  responseBody: testResult,
  envelope: 'own',
  handle: ({ user, body, parts }) => testDraft(parts, body, user),
})
