import { GatewayError } from '../errors.ts'
import type { AllowedMethods } from './route-table.ts'
import { shownPath } from './routing/shown-path.ts'

/** The refusal where no endpoint has the path. `meant`: the path that it probably stands for. */
export function pathNotFound(path: string, meant: string | undefined): GatewayError {
  const suggestion = meant === undefined ? '' : `; did you mean ${meant}?`
  return new GatewayError('not_found', `there is nothing at ${shownPath(path)}${suggestion}`)
}

/** The refusal where endpoints have the path, with other methods. */
export function methodNotAllowed(method: string, path: string, { methods }: AllowedMethods): GatewayError {
  const allow = methods.join(', ')
  return new GatewayError('method_not_allowed', `${shownPath(path)} takes ${allow}, not ${method}`, { allow })
}

/** The refusal while the gateway stops and takes no more calls. */
export function gatewayStopping(): GatewayError {
  return new GatewayError('overloaded', 'the gateway is stopping; try again', { retryAfter: 5 })
}
