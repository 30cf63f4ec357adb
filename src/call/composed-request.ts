import { Request } from '@sluice/http1'
import type { Headers, Request as ReadRequest } from '../http/request.ts'

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
