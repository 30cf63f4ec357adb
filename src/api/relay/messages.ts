import { messagesRequestSchema } from '../../protocols/messages/index.ts'
import type { KeyEndpoint } from '../endpoint.ts'

/** `docs/api.md: Messages`. */
export const messages: KeyEndpoint = {
  method: 'POST',
  path: '/v1/messages',
  area: 'messages',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'x-api-key',
  summary: 'A response to a conversation, whole or streamed',
  requestSchema: messagesRequestSchema,
  contentTypes: ['application/json', 'text/event-stream'],
  handle: (exchange, caller, relay) => relay.call('messages', exchange, caller),
}
