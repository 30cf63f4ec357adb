import { rerankRequestSchema } from '../../protocols/rerank/index.ts'
import type { KeyEndpoint } from '../endpoint.ts'

/** Paths of both versions; they differ in the type of documents that Cohere's clients declare. */
const PATHS = [
  ['/v1/rerank', 'rerank'],
  ['/v2/rerank', 'rerank v2'],
] as const

/** `docs/api.md: Rerank`. */
export const rerank: readonly KeyEndpoint[] = PATHS.map(([path, endpoint]) => ({
  method: 'POST',
  path,
  area: 'rerank',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  summary: 'Documents in the order of their relevance to a query',
  requestSchema: rerankRequestSchema,
  contentTypes: ['application/json'],
  handle: (exchange, caller, relay) => relay.call(endpoint, exchange, caller),
}))
