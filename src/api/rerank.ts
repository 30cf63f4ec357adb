import type { KeyEndpoint } from './endpoint.ts'

/** `docs/api.md: Rerank`. */
export const rerank: KeyEndpoint = {
  method: 'POST',
  path: '/v1/rerank',
  area: 'rerank',
  door: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  handle: (visit, caller, relay) => relay.call('rerank', visit, caller),
}
