import { gatewayStatus, statusSchema } from '../../management/status/gateway-status.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Status`. */
export const status = defineEndpoint({
  method: 'GET',
  path: '/api/status',
  area: 'management',
  access: 'visitor',
  summary: 'Version, and how quota is displayed',
  responseBody: statusSchema,
  handle: ({ parts }) => Promise.resolve(gatewayStatus(parts.settings())),
})
