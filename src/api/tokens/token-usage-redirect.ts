import type { OpenEndpoint } from '../endpoint.ts'

/** Redirects from the path without the trailing slash. `docs/api.md: Self-check and billing`. */
export const tokenUsageRedirect: OpenEndpoint = {
  method: 'GET',
  path: '/api/usage/token',
  area: 'usage',
  kind: 'raw',
  access: 'anyone',
  summary: 'Redirects to the path with a trailing slash',
  status: 301,
  handle({ id, request: { url }, response }) {
    const query = url.slice(tokenUsageRedirect.path.length)
    response.writeHead(301, {
      location: `${tokenUsageRedirect.path}/${query}`,
      'content-length': '0',
      'cache-control': 'no-store',
      'x-request-id': id,
    })
    response.end()
  },
}
