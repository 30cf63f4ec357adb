import { moderationsRequestSchema } from '../../protocols/moderations/index.ts'
import type { KeyEndpoint } from '../endpoint.ts'

/** `docs/api.md: Moderations`. */
export const moderations: KeyEndpoint = {
  method: 'POST',
  path: '/v1/moderations',
  area: 'relay',
  kind: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  summary: 'Whether texts and images may harm',
  requestSchema: moderationsRequestSchema,
  contentTypes: ['application/json'],
  handle: (exchange, caller, relay) => relay.call('moderations', exchange, caller),
}
