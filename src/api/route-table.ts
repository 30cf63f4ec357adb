import { GatewayError } from '../errors.ts'
import type { Request } from '../http/request.ts'
import { RESPONSES_ENDPOINT } from './calls.ts'
import type { Endpoint } from './endpoint.ts'
import type { ApiArea } from './envelopes.ts'
import { literalLength, type PathParams, pathPattern, redactedPath } from './paths.ts'

/** The endpoint of a request, and the parameters of its path. */
export interface FoundEndpoint<Kind extends Endpoint> {
  readonly endpoint: Kind
  readonly params: PathParams
}

/** The methods of a path that does not accept the requested method. */
export interface AllowedMethods {
  readonly methods: readonly string[]
  readonly area: ApiArea
}

/**
 * Finds endpoints by method and path. A literal path takes precedence over one with parameters, and of several with
 * parameters the one with the most literal characters: `/v1/models/:id` does not hide `/v1/models/:id/limits`, even if
 * `:id` may contain slashes. The order of the list does not matter.
 *
 * A web framework would bring a second set of error handlers, request ids and body limits, which would have to match
 * those of calls.
 */
export class RouteTable<Kind extends Endpoint> {
  /** Endpoints by their declared path, without parameters. */
  readonly #byPath = new Map<string, FoundEndpoint<Kind>[]>()
  readonly #patterns: readonly {
    readonly match: (path: string) => PathParams | undefined
    readonly path: string
  }[]

  constructor(routes: readonly Kind[]) {
    for (const route of routes) {
      const found = { endpoint: route, params: {} }
      const same = this.#byPath.get(route.path)
      if (same) same.push(found)
      else this.#byPath.set(route.path, [found])
    }
    this.#patterns = [...this.#byPath.keys()]
      .filter((path) => path.includes(':'))
      .toSorted((one, other) => literalLength(other) - literalLength(one))
      .map((path) => ({ match: pathPattern(path), path }))
  }

  /**
   * Finds the endpoint for a method and a path, or the methods that the path accepts; undefined if no
   * endpoint has the path. HEAD is served wherever GET is (RFC 9110, 9.3.2).
   */
  find(method: string, path: string): FoundEndpoint<Kind> | AllowedMethods | undefined {
    const pattern = this.#byPath.has(path) ? undefined : this.#patterned(path)
    const found = this.#byPath.get(pattern?.path ?? path)
    if (!found) return undefined
    const same = found.find(({ endpoint }) => takes(endpoint, method))
    if (same) return pattern ? { ...same, params: pattern.params } : same
    const methods = found.flatMap(({ endpoint }) =>
      takes(endpoint, 'HEAD') ? [endpoint.method, 'HEAD'] : endpoint.method,
    )
    return { methods, area: found[0]?.endpoint.area ?? 'relay' }
  }

  #patterned(given: string): { path: string; params: PathParams } | undefined {
    for (const { match, path } of this.#patterns) {
      const params = match(given)
      if (params) return { path, params }
    }
    return undefined
  }
}

function takes({ method, hasEffect }: Endpoint, requested: string): boolean {
  return requested === method || (requested === 'HEAD' && method === 'GET' && !hasEffect)
}

/** The error for a path that no endpoint has. `suggestion` is the path that was probably meant. */
export function pathNotFound(path: string, suggestion: string | undefined): GatewayError {
  const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`
  return new GatewayError('not_found', `there is nothing at ${redactedPath(path)}${hint}`)
}

/**
 * The error for a path whose endpoints accept only other methods. Clients of the responses protocol that ask
 * for a WebSocket fall back to POST after a 426, but not after a 405; `docs/api.md: Responses`.
 */
export function methodNotAllowedError(
  { method, headers }: Pick<Request, 'method' | 'headers'>,
  path: string,
  { methods }: AllowedMethods,
  basePath: string,
): GatewayError {
  const allow = methods.join(', ')
  if (path === RESPONSES_ENDPOINT.path && headers.upgrade?.toLowerCase() === 'websocket')
    return new GatewayError(
      'upgrade_required',
      `${basePath}${path} serves no WebSocket, but POST with stream: true`,
    )
  return new GatewayError(
    'method_not_allowed',
    `${basePath}${redactedPath(path)} takes ${allow}, not ${method}`,
    {
      allow,
    },
  )
}

/** The error for new requests while the gateway is shutting down. */
export function gatewayStoppingError(): GatewayError {
  return new GatewayError('overloaded', 'the gateway is stopping; try again', { retryAfter: 5 })
}
