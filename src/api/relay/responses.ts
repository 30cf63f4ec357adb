import { responsesRequestSchema } from '../../protocols/responses/index.ts'
import type { KeyEndpoint } from '../endpoint.ts'

/** `docs/api.md: Responses`. */
export const responses: KeyEndpoint = {
  method: 'POST',
  path: '/v1/responses',
  area: 'relay',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  summary: 'A response, whole or streamed',
  requestSchema: responsesRequestSchema,
  contentTypes: ['application/json', 'text/event-stream'],
  handle: (exchange, caller, relay) => relay.call('responses', exchange, caller),
}
