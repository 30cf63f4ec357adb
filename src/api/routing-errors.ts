import { GatewayError } from '../errors.ts'
import type { AllowedMethods } from './route-table.ts'
import { shownPath } from './routing/shown-path.ts'

/** The error where no endpoint has the path. `suggestion`: the path that was probably meant. */
export function pathNotFound(path: string, suggestion: string | undefined): GatewayError {
  const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`
  return new GatewayError('not_found', `there is nothing at ${shownPath(path)}${hint}`)
}

/** The error where endpoints have the path, with other methods. */
export function methodNotAllowed(method: string, path: string, { methods }: AllowedMethods): GatewayError {
  const allow = methods.join(', ')
  return new GatewayError('method_not_allowed', `${shownPath(path)} takes ${allow}, not ${method}`, { allow })
}

/** The error while the gateway drains. */
export function gatewayStopping(): GatewayError {
  return new GatewayError('overloaded', 'the gateway is stopping; try again', { retryAfter: 5 })
}
