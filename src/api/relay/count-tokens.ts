import { countRequestSchema } from '../../protocols/messages/index.ts'
import { messagesCounting } from '../../relay/dialects/messages/count-tokens.ts'
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
  // Upstreams need not have this path: the gateway then counts itself.
  hiddenStatuses: [404],
  handle: (exchange, caller, relay) => relay.countTokens(messagesCounting, exchange, caller),
}
