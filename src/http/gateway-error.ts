import type { RequestError } from '@sluice/http1'
import { type ErrorCode, GatewayError } from '../errors.ts'

const CODES: Readonly<Record<RequestError['status'], ErrorCode>> = {
  400: 'invalid_request',
  408: 'request_timeout',
  417: 'expectation_failed',
  429: 'rate_limited',
  431: 'headers_too_large',
  501: 'not_implemented',
}

/** Converts an error with which the HTTP server refuses a request to an error of the gateway. */
export function gatewayErrorOf({ status, message, retryAfter }: RequestError): GatewayError {
  return new GatewayError(CODES[status], message, retryAfter === undefined ? {} : { retryAfter })
}
