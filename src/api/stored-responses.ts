import type { CallEndpoint } from './endpoint.ts'

const COMMON = {
  area: 'relay',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  // Most of these errors come from the upstream.
  errorStatuses: [400, 404, 409, 413, 422, 529],
} as const

const INCLUDED = { type: 'array', items: { type: 'string' } }
const INCLUDE = { include: INCLUDED, 'include[]': INCLUDED }

/** Operations on responses by id: `docs/api.md: Stored responses`. */
export const STORED_RESPONSE_ENDPOINTS: readonly CallEndpoint[] = [
  {
    ...COMMON,
    method: 'GET',
    path: '/v1/responses/:id',
    summary: 'A response as it stands, or its stream again',
    queryFields: {
      ...INCLUDE,
      stream: { type: 'boolean' },
      starting_after: { type: 'integer', minimum: 0 },
    },
    contentTypes: ['application/json', 'text/event-stream'],
    // Retrieving a response may settle the cost of a background response.
    hasEffect: true,
    handle: (exchange, caller, { responses }, { id = '' }) => responses.retrieve(exchange, caller, id),
  },
  {
    ...COMMON,
    method: 'DELETE',
    path: '/v1/responses/:id',
    summary: 'Deletes a response',
    handle: (exchange, caller, { responses }, { id = '' }) => responses.remove(exchange, caller, id),
  },
  {
    ...COMMON,
    method: 'GET',
    path: '/v1/responses/:id/input_items',
    summary: 'The items that a response was made from',
    queryFields: {
      ...INCLUDE,
      after: { type: 'string' },
      order: { type: 'string', enum: ['asc', 'desc'] },
      limit: { type: 'integer', minimum: 1, maximum: 100 },
    },
    hasEffect: true,
    handle: (exchange, caller, { responses }, { id = '' }) => responses.inputItems(exchange, caller, id),
  },
  {
    ...COMMON,
    method: 'POST',
    path: '/v1/responses/:id/cancel',
    summary: 'Cancels a response that is made in the background',
    repeats: 'by key',
    handle: (exchange, caller, { responses }, { id = '' }) => responses.cancel(exchange, caller, id),
  },
]
