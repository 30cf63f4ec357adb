import { chatRequestSchema } from '../../protocols/chat/index.ts'
import type { KeyEndpoint } from '../endpoint.ts'

/** The same as chat completions, at an older address. `docs/api.md: Chat completions`. */
export const completions: KeyEndpoint = {
  method: 'POST',
  path: '/v1/completions',
  area: 'relay',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  summary: 'The same as /v1/chat/completions',
  requestSchema: chatRequestSchema,
  contentTypes: ['application/json', 'text/event-stream'],
  handle: (exchange, caller, relay) => relay.call('chat', exchange, caller),
}
