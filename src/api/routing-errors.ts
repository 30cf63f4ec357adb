import { GatewayError } from '../errors.ts'
import type { Request } from '../http/request.ts'
import type { AllowedMethods } from './route-table.ts'
import { responses } from './calls.ts'
import { shownPath } from './routing/shown-path.ts'

/** The error if no endpoint has the path. `suggestion` is the path that was probably meant. */
export function pathNotFound(path: string, suggestion: string | undefined): GatewayError {
  const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`
  return new GatewayError('not_found', `there is nothing at ${shownPath(path)}${hint}`)
}

/**
 * The error if endpoints have the path, but for other methods. Clients of the responses protocol that ask for
 * a WebSocket fall back to POST after a 426, but not after a 405; `docs/api.md: Responses`.
 */
export function methodNotAllowed(
  { method, headers }: Pick<Request, 'method' | 'headers'>,
  path: string,
  { methods }: AllowedMethods,
): GatewayError {
  const allow = methods.join(', ')
  if (path === responses.path && headers.upgrade?.toLowerCase() === 'websocket')
    return new GatewayError('upgrade_required', `${path} serves no WebSocket, but POST with stream: true`)
  return new GatewayError('method_not_allowed', `${shownPath(path)} takes ${allow}, not ${method}`, { allow })
}

/** The error while the gateway drains. */
export function gatewayStopping(): GatewayError {
  return new GatewayError('overloaded', 'the gateway is stopping; try again', { retryAfter: 5 })
}
