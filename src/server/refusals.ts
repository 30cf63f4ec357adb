import { GatewayError } from '../errors.ts'
import type { RequestHead, UnreadableReason } from './request-reader.ts'
import { isAuthority } from './request-target.ts'

/** What is said to a caller whose request cannot be read. */
export function unreadableRequest(unreadable: UnreadableReason): GatewayError {
  switch (unreadable) {
    case 'malformed':
      return new GatewayError('invalid_request', 'this is no valid HTTP request')
    case 'headers too large':
      return new GatewayError(
        'headers_too_large',
        'the request has more than 16 KiB of headers, or more than 100',
      )
    case 'unknown transfer coding':
      return new GatewayError('not_implemented', 'of transfer codings, chunked alone is served')
  }
}

/** What is said to a client that has too many requests under way behind a proxy. */
export function tooManyRequestsBehindProxy(): GatewayError {
  return new GatewayError('rate_limited', 'as many requests of this address are under way as there may be', {
    retryAfter: 1,
  })
}

/** What is said to whoever takes too long to send a request. */
export function requestTimeout(): GatewayError {
  return new GatewayError('request_timeout', 'the request was not complete in time')
}

/**
 * What makes a head unfit to be answered, though its grammar is right: parties on the way may read it in
 * another way, or it asks for what is not HTTP/1.
 */
export function headError({ method, version, hosts, headers }: RequestHead): GatewayError | undefined {
  if (version !== '1.1' && version !== '1.0')
    return new GatewayError('invalid_request', 'this is no valid HTTP request')
  if (method === 'CONNECT')
    return new GatewayError('invalid_request', 'this is no proxy: CONNECT is not served')
  if (hosts > 1 || (hosts === 0 && version !== '1.0'))
    return new GatewayError('invalid_request', 'the request is expected to have one Host header')
  if (headers.host !== undefined && !isAuthority(headers.host))
    return new GatewayError('invalid_request', 'the Host header is no host and port')
  const { expect } = headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue')
    return new GatewayError('expectation_failed', 'of what a request may expect, 100-continue alone is known')
  return undefined
}
