import { GatewayError } from '../errors.ts'
import type { RequestHead, UnreadableReason } from './request-reader.ts'
import { isAuthority } from './request-target.ts'

/** Error for a request that cannot be read. */
export function unreadableRequest(unreadable: UnreadableReason): GatewayError {
  switch (unreadable) {
    case 'malformed':
      return new GatewayError('invalid_request', 'this is not a valid HTTP request')
    case 'headers too large':
      return new GatewayError(
        'headers_too_large',
        'the request has more than 16 KiB of headers, or more than 100',
      )
    case 'unknown transfer coding':
      return new GatewayError('not_implemented', 'chunked is the only transfer coding that is supported')
  }
}

/** Error for a client that has too many requests under way behind a proxy. */
export function tooManyRequestsBehindProxy(): GatewayError {
  return new GatewayError('rate_limited', 'too many requests from this address are under way', {
    retryAfter: 1,
  })
}

/** Error for a client that takes too long to send a request. */
export function requestTimeout(): GatewayError {
  return new GatewayError('request_timeout', 'the request was not complete in time')
}

/**
 * Finds the error of a well-formed head that must not be served: it asks for something beyond HTTP/1, or
 * proxies could read it differently.
 */
export function headError({ method, version, hosts, headers }: RequestHead): GatewayError | undefined {
  if (version !== '1.1' && version !== '1.0')
    return new GatewayError('invalid_request', 'this is not a valid HTTP request')
  if (method === 'CONNECT')
    return new GatewayError('invalid_request', 'this is not a proxy: CONNECT is not supported')
  if (hosts > 1 || (hosts === 0 && version !== '1.0'))
    return new GatewayError('invalid_request', 'the request is expected to have one Host header')
  if (headers.host !== undefined && !isAuthority(headers.host))
    return new GatewayError('invalid_request', 'the Host header is not a host and port')
  const { expect } = headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue')
    return new GatewayError('expectation_failed', '100-continue is the only expectation that is supported')
  return undefined
}
