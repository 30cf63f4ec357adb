import { Request } from '@sluice/http1'
import type { Headers, Request as ReadRequest } from '../http/request.ts'

/** Headers that concern one exchange of HTTP, or a body that its parts do not have. */
const NOT_OF_PARTS: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'idempotency-key',
  'origin',
  'transfer-encoding',
  'upgrade',
  'sec-websocket-extensions',
  'sec-websocket-key',
  'sec-websocket-protocol',
  'sec-websocket-version',
])

/** The headers of a request, or of an upgrade, that hold for each call that is made for it. */
export function headersOfParts(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !NOT_OF_PARTS.has(name)))
}

/** A request with a JSON body that did not come by HTTP, as if it had come by POST. */
export function composedRequest(
  url: string,
  headers: Headers,
  body: Buffer,
  source: { readonly remoteAddress: string; readonly bytesRead: number },
): ReadRequest {
  const request = new Request(
    {
      method: 'POST',
      url,
      version: '1.1',
      headers: { ...headers, 'content-type': 'application/json', 'content-length': String(body.length) },
      hosts: 1,
      keepAlive: true,
    },
    { remoteAddress: source.remoteAddress, bytesRead: source.bytesRead, updateReading() {} },
  )
  request.onChunks([body])
  request.onBodyEnd('complete')
  return request
}
