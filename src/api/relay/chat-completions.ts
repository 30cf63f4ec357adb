import { chatRequestSchema } from '../../protocols/chat/index.ts'
import type { KeyEndpoint } from '../endpoint.ts'

/** `docs/api.md: Chat completions`. */
export const chatCompletions: KeyEndpoint = {
  method: 'POST',
  path: '/v1/chat/completions',
  area: 'relay',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  summary: 'A chat completion, whole or streamed',
  requestSchema: chatRequestSchema,
  contentTypes: ['application/json', 'text/event-stream'],
  handle: (exchange, caller, relay) => relay.call('chat', exchange, caller),
}
