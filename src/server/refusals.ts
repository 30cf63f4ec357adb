import { GatewayError } from '../errors.ts'
import type { RequestHead, Unreadable } from './request-reader.ts'

/** What is said to whoever sent what cannot be read. */
export function cannotBeRead(unreadable: Unreadable): GatewayError {
  return unreadable === 'malformed'
    ? new GatewayError('invalid_request', 'this is no valid HTTP request')
    : new GatewayError('headers_too_large', 'the request has more than 16 KiB of headers, or more than 100')
}

/** What is said to whoever takes too long to send a request. */
export function tooSlow(): GatewayError {
  return new GatewayError('request_timeout', 'the request was not complete in time')
}

/**
 * What makes a head unfit to be answered, though its grammar is right: parties on the way may read it in another way, or it asks for what
 * is not HTTP/1.
 */
export function headTrouble({ method, version, hosts, headers }: RequestHead): GatewayError | undefined {
  if (version !== '1.1' && version !== '1.0')
    return new GatewayError('invalid_request', 'this is no valid HTTP request')
  if (method === 'CONNECT')
    return new GatewayError('invalid_request', 'this is no proxy: CONNECT is not served')
  if (hosts > 1 || (hosts === 0 && version !== '1.0'))
    return new GatewayError('invalid_request', 'the request is expected to have one Host header')
  const { expect } = headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue')
    return new GatewayError('expectation_failed', 'of what a request may expect, 100-continue alone is known')
  return undefined
}
