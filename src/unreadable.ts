import { randomUUIDv7 } from 'node:crypto'
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { renderError } from './api/envelopes.ts'
import { GatewayError } from './errors.ts'

const KINDS = new Map<string | undefined, () => GatewayError>([
  [
    'HPE_HEADER_OVERFLOW',
    () =>
      new GatewayError('headers_too_large', 'the request has more than 16 KiB of headers, or more than 100'),
  ],
  [
    'ERR_HTTP_REQUEST_TIMEOUT',
    () => new GatewayError('request_timeout', 'the request was not complete in time'),
  ],
])

/**
 * Answers what is no HTTP request, in the words of the API, and closes the connection: nothing after it can be trusted.
 * Where another answer is under way on it, it is only closed.
 */
export function answerUnreadable(error: NodeJS.ErrnoException, socket: Duplex, isAnswering: boolean): void {
  if (!socket.writable || isAnswering || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const known =
    KINDS.get(error.code)?.() ?? new GatewayError('invalid_request', 'this is no valid HTTP request')
  const { status, headers, body } = renderError('relay', known, randomUUIDv7())
  const head = Object.entries({ ...headers, connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.join('')}\r\n${body.toString()}`)
}

/**
 * What makes a head unfit to be answered, though its grammar is right: it does not say once and only once which host it is
 * meant for, so that parties on the way may read it in another way.
 */
export function headTrouble({ rawHeaders, httpVersion }: IncomingMessage): GatewayError | undefined {
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  if (hosts === 1 || (hosts === 0 && httpVersion === '1.0')) return undefined
  return new GatewayError('invalid_request', 'the request is expected to have one Host header')
}
