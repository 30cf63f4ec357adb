import type { ResponseHeaders } from '../server/response-head.ts'
import { idHeaders } from '../server/id-headers.ts'
import type { Request } from '../server/request.ts'
import type { Response } from '../server/response.ts'

/** Seconds for which a browser may keep the answer to a preflight. */
const MAX_AGE = '7200'
const METHODS = 'GET, POST, DELETE'
/** Headers of answers that a page may read beside the few that every page may. */
const EXPOSED = [
  'allow',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'request-id',
  'retry-after',
  'x-gateway-dropped',
  'x-gateway-model',
  'x-request-id',
  'x-should-retry',
].join(', ')
/** Names of headers with commas and blanks between them. */
const HEADER_LIST = /^[\w!#$%&'*+.^`|~, -]{1,4096}$/

/**
 * Which pages in browsers may call: exact origins, or `*` for all of them. `docs/configuration.md: Browsers`.
 */
export interface Cors {
  readonly origins: readonly string[]
}

/**
 * Says in the answer that a page of this origin may read it, where the operator lets it. True where the
 * request was a preflight, which is answered by that.
 */
export function applyCors(
  cors: Cors,
  { request, response, id }: { readonly request: Request; readonly response: Response; readonly id: string },
  path: string,
  isMessages: boolean,
): boolean {
  const { origin = '' } = request.headers
  const allowed = cors.origins.length > 0 && allowsCors(path) ? corsHeaders(cors, origin) : undefined
  if (!allowed) return false
  for (const name in allowed) response.setHeader(name, allowed[name] as string)
  if (!isPreflight(request)) return false
  response.writeHead(204, { ...preflightHeaders(request), ...idHeaders(id, isMessages) }).end()
  return true
}

/** Whether a path is one that pages may be let in at: those of the API, never those of accounts. */
function allowsCors(path: string): boolean {
  return path.startsWith('/v1/') || path.startsWith('/v1beta/') || path === '/v2/rerank'
}

/** The headers of any answer to a page of this origin; undefined where it is not let in. */
function corsHeaders({ origins }: Cors, origin: string): ResponseHeaders | undefined {
  const isAny = origins.includes('*')
  if (!isAny && !origins.includes(origin)) return undefined
  return {
    'access-control-allow-origin': isAny ? '*' : origin,
    'access-control-expose-headers': EXPOSED,
    vary: 'origin',
  }
}

/** Whether a browser only asks if it may send a request. */
function isPreflight({ method, headers }: Request): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
}

/** The headers of a preflight answer beside `corsHeaders`: any header that is asked for may be sent. */
function preflightHeaders({ headers }: Request): ResponseHeaders {
  const asked = headers['access-control-request-headers']
  return {
    'access-control-allow-methods': METHODS,
    ...(asked !== undefined && HEADER_LIST.test(asked) && { 'access-control-allow-headers': asked }),
    'access-control-max-age': MAX_AGE,
  }
}
