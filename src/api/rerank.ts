import { rerankRequestSchema } from '../protocols/rerank/index.ts'
import type { KeyEndpoint } from './endpoint.ts'

/** `docs/api.md: Rerank`. */
export const rerank: KeyEndpoint = {
  method: 'POST',
  path: '/v1/rerank',
  area: 'rerank',
  door: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  summary: 'Documents in the order of their relevance to a query',
  takes: rerankRequestSchema,
  gives: ['application/json'],
  handle: (visit, caller, relay) => relay.call('rerank', visit, caller),
}
