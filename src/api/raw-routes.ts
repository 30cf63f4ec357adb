import { answerHeaders } from '../http/answer-headers.ts'
import { BATCH_ENDPOINTS, FILE_ENDPOINTS } from './batches.ts'
import { CALL_ENDPOINTS, PLAYGROUND_ENDPOINTS } from './calls.ts'
import type { UnauthenticatedEndpoint, RawEndpoint } from './endpoint.ts'
import { GEMINI_ENDPOINTS } from './gemini.ts'
import { MCP_ENDPOINTS } from './mcp.ts'
import { MEDIA_ENDPOINTS } from './media.ts'
import { healthz, metricsEndpoint, readyz } from './monitoring.ts'
import { STORED_RESPONSE_ENDPOINTS } from './stored-responses.ts'

/**
 * Redirects from `/api/usage/token` to the same path with a slash at the end. `docs/api.md: Self-check and
 * billing`.
 */
const tokenUsageRedirect: UnauthenticatedEndpoint = {
  method: 'GET',
  path: '/api/usage/token',
  area: 'usage',
  kind: 'raw',
  access: 'anyone',
  summary: 'Redirects to the path with a trailing slash',
  status: 301,
  handle({ id, basePath, request: { url }, response }) {
    const query = url.slice(tokenUsageRedirect.path.length)
    response.writeHead(301, {
      location: `${basePath}${tokenUsageRedirect.path}/${query}`,
      'content-length': '0',
      'cache-control': 'no-store',
      ...answerHeaders(id, undefined),
    })
    response.end()
  },
}

/** The endpoints that read requests and write responses themselves: model calls and monitoring. */
export const RAW_ROUTES: readonly RawEndpoint[] = [
  ...CALL_ENDPOINTS,
  ...STORED_RESPONSE_ENDPOINTS,
  ...FILE_ENDPOINTS,
  ...BATCH_ENDPOINTS,
  ...GEMINI_ENDPOINTS,
  ...PLAYGROUND_ENDPOINTS,
  ...MEDIA_ENDPOINTS,
  ...MCP_ENDPOINTS,
  healthz,
  readyz,
  metricsEndpoint,
  tokenUsageRedirect,
]
