import { rerankRequestSchema } from '../../protocols/rerank/index.ts'
import type { KeyEndpoint } from '../endpoint.ts'

/** `docs/api.md: Rerank`. Clients of the second version of the protocol differ in the path alone. */
export const rerank: readonly KeyEndpoint[] = ['/v1/rerank', '/v2/rerank'].map((path) => ({
  method: 'POST',
  path,
  area: 'rerank',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  summary: 'Documents in the order of their relevance to a query',
  requestSchema: rerankRequestSchema,
  contentTypes: ['application/json'],
  handle: (exchange, caller, relay) => relay.call('rerank', exchange, caller),
}))
