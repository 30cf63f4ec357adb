import type { RequestHead, UnreadableReason } from './request-reader.ts'
import { isAuthority } from './request-target.ts'

/** Error of a request that the server refuses itself, without calling the listener. */
export interface RequestError {
  readonly status: 400 | 408 | 417 | 429 | 431 | 501
  readonly message: string
  /** Seconds after which the client may try again. */
  readonly retryAfter?: number
}

const MALFORMED: RequestError = { status: 400, message: 'this is not a valid HTTP request' }
const CONNECT: RequestError = { status: 400, message: 'this is not a proxy: CONNECT is not supported' }
const HOST_COUNT: RequestError = { status: 400, message: 'the request is expected to have one Host header' }
const INVALID_HOST: RequestError = { status: 400, message: 'the Host header is not a host and port' }
const UNKNOWN_EXPECTATION: RequestError = {
  status: 417,
  message: '100-continue is the only expectation that is supported',
}

/** Errors of requests that cannot be read. */
export const UNREADABLE_REQUEST_ERRORS: Readonly<Record<UnreadableReason, RequestError>> = {
  malformed: MALFORMED,
  'headers too large': {
    status: 431,
    message: 'the request has more than 16 KiB of headers, or more than 100',
  },
  'unknown transfer coding': {
    status: 501,
    message: 'chunked is the only transfer coding that is supported',
  },
}

/** Error for a client that has too many requests under way behind a proxy. */
export const TOO_MANY_REQUESTS: RequestError = {
  status: 429,
  message: 'too many requests from this address are under way',
  retryAfter: 1,
}

/** Error for a client that takes too long to send a request. */
export const REQUEST_TIMEOUT: RequestError = {
  status: 408,
  message: 'the request was not complete in time',
}

/**
 * Finds the error of a valid head that must not be served, because it asks for something that HTTP/1 does not
 * have, or because proxies could read it differently.
 */
export function errorOfRequestHead({
  method,
  version,
  hosts,
  headers,
}: RequestHead): RequestError | undefined {
  if (version !== '1.1' && version !== '1.0') return MALFORMED
  if (method === 'CONNECT') return CONNECT
  if (hosts > 1 || (hosts === 0 && version !== '1.0')) return HOST_COUNT
  if (headers.host !== undefined && !isAuthority(headers.host)) return INVALID_HOST
  const { expect } = headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') return UNKNOWN_EXPECTATION
  return undefined
}
