import { countRequestSchema } from '../../protocols/messages/index.ts'
import type { KeyEndpoint } from '../endpoint.ts'

/** `docs/api.md: Messages`. */
export const countTokens: KeyEndpoint = {
  method: 'POST',
  path: '/v1/messages/count_tokens',
  area: 'messages',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'x-api-key',
  summary: 'Counts the tokens of a conversation',
  requestSchema: countRequestSchema,
  // Not every upstream has this path; after a 404 the gateway counts the tokens itself.
  hiddenStatuses: [404],
  handle: (exchange, caller, relay) => relay.countTokens('messages', exchange, caller),
}
