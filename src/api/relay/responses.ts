import { responsesRequestSchema } from '../../protocols/responses/index.ts'
import type { KeyEndpoint } from '../endpoint.ts'

const COMMON = {
  method: 'POST',
  area: 'relay',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  requestSchema: responsesRequestSchema,
} as const satisfies Partial<KeyEndpoint>

/** `docs/api.md: Responses`. */
export const responses: KeyEndpoint = {
  ...COMMON,
  path: '/v1/responses',
  summary: 'A response, whole or streamed',
  contentTypes: ['application/json', 'text/event-stream'],
  handle: (exchange, caller, relay) => relay.call('responses', exchange, caller),
}

/** `docs/api.md: Responses`. */
export const countInputTokens: KeyEndpoint = {
  ...COMMON,
  path: '/v1/responses/input_tokens',
  summary: 'How many tokens the input of a response has',
  // Not every upstream has this path; after a 404 the gateway counts the tokens itself.
  hiddenStatuses: [404],
  handle: (exchange, caller, relay) => relay.countTokens('responses', exchange, caller),
}

/** `docs/api.md: Responses`. */
export const compactResponses: KeyEndpoint = {
  ...COMMON,
  path: '/v1/responses/compact',
  summary: 'A conversation, compacted by its upstream',
  contentTypes: ['application/json'],
  handle: (exchange, caller, relay) => relay.compact(exchange, caller),
}
