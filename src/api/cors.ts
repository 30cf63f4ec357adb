import type { Response, ResponseHeaders } from '@sluice/http1'
import type { ServedProtocol } from '@sluice/wire/protocols'
import { ANSWER_HEADER_NAMES, answerHeaders } from '../http/answer-headers.ts'
import type { Request } from '../http/request.ts'
import { DESCRIBED_HEADER_NAMES } from './call-headers.ts'
import { LIMIT_HEADER_NAMES } from '../features/limit-headers/limit-headers.ts'
import { isRelayPath } from './paths.ts'

/** Seconds for which a browser may cache the response to a preflight. */
const MAX_AGE = '7200'
const METHODS = 'GET, POST, DELETE'
/** Response headers that a page may read, in addition to the CORS-safelisted ones. */
const EXPOSED = [
  ...LIMIT_HEADER_NAMES,
  ...[
    ...ANSWER_HEADER_NAMES,
    ...DESCRIBED_HEADER_NAMES,
    'allow',
    'deprecation',
    'mcp-session-id',
    'ratelimit-limit',
    'ratelimit-remaining',
    'ratelimit-reset',
    'retry-after',
    'sunset',
    'x-gateway-dropped',
    'x-gateway-guards',
    'x-gateway-mcp-unavailable',
    'x-gateway-model',
    'x-should-retry',
  ].toSorted(),
].join(', ')
/** A list of header names in `access-control-request-headers`, separated by commas and spaces. */
const HEADER_LIST = /^[\w!#$%&'*+.^`|~, -]{1,4096}$/

/** Origins whose pages may call the API: exact ones, or `*` for all. `docs/configuration.md: Browsers`. */
export interface Cors {
  readonly origins: readonly string[]
}

/**
 * Sets the CORS headers of the response if the request's origin is allowed. Returns true if the request was a
 * preflight request, which it has then answered.
 */
export function applyCors(
  cors: Cors,
  { request, response, id }: { readonly request: Request; readonly response: Response; readonly id: string },
  path: string,
  protocol: ServedProtocol | undefined,
): boolean {
  const { origin = '' } = request.headers
  const allowed = cors.origins.length > 0 && isRelayPath(path) ? corsHeaders(cors, origin) : undefined
  if (!allowed) return false
  for (const name in allowed) response.setHeader(name, allowed[name] as string)
  if (!isPreflight(request)) return false
  response.writeHead(204, { ...preflightHeaders(request), ...answerHeaders(id, protocol) }).end()
  return true
}

/** The headers of every response to this origin; undefined if it is not allowed. */
function corsHeaders({ origins }: Cors, origin: string): ResponseHeaders | undefined {
  const isAny = origins.includes('*')
  if (!isAny && !origins.includes(origin)) return undefined
  return {
    'access-control-allow-origin': isAny ? '*' : origin,
    'access-control-expose-headers': EXPOSED,
    vary: 'origin',
  }
}

/** Whether a request is a CORS preflight. */
function isPreflight({ method, headers }: Request): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
}

/** The headers of a preflight response in addition to `corsHeaders`. All requested headers are allowed. */
function preflightHeaders({ headers }: Request): ResponseHeaders {
  const requested = headers['access-control-request-headers']
  return {
    'access-control-allow-methods': METHODS,
    ...(requested !== undefined &&
      HEADER_LIST.test(requested) && { 'access-control-allow-headers': requested }),
    'access-control-max-age': MAX_AGE,
  }
}
