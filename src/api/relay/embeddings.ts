import { embeddingsRequestSchema } from '../../protocols/embeddings/index.ts'
import type { KeyEndpoint } from '../endpoint.ts'

/** `docs/api.md: Embeddings`. */
export const embeddings: KeyEndpoint = {
  method: 'POST',
  path: '/v1/embeddings',
  area: 'relay',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  summary: 'Vectors of texts',
  requestSchema: embeddingsRequestSchema,
  contentTypes: ['application/json'],
  handle: (exchange, caller, relay) => relay.call('embeddings', exchange, caller),
}
