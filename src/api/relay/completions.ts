import { chatRequestSchema, completionRequestSchema } from '../../protocols/chat/index.ts'
import type { KeyEndpoint } from '../endpoint.ts'

/**
 * `docs/api.md: Completions`. A request with messages is treated as a chat completion sent to an older path.
 */
export const completions: KeyEndpoint = {
  method: 'POST',
  path: '/v1/completions',
  area: 'relay',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  summary: 'A completion of a prompt, whole or streamed',
  requestSchema: () => ({ anyOf: [completionRequestSchema(), chatRequestSchema()] }),
  contentTypes: ['application/json', 'text/event-stream'],
  handle: (exchange, caller, relay) => relay.call('completions', exchange, caller),
}
