import { randomUUIDv7 } from 'node:crypto'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { renderError } from './api/envelopes.ts'
import type { App } from './app.ts'
import { GatewayError } from './errors.ts'
import { answerUnreadable, headTrouble } from './unreadable.ts'

/** Where the gateway listens. */
export interface Address {
  readonly host: string
  /** 0 = any free one. */
  readonly port: number
}

/**
 * Listens at once, so that an address that is taken is known before anything is made; calls are answered with 503 until
 * there is an application. Rejects with a sentence for the operator.
 */
export async function listen(
  { host, port }: Address,
  app: () => App | undefined,
): Promise<{ server: Server; url: string }> {
  // What follows a head that was refused is not answered: one refusal is enough.
  const refused = new WeakSet<object>()
  const listener: RequestListener = (request, response) => {
    const trouble = headTrouble(request)
    if (trouble) {
      refused.add(request.socket)
      refuse(response, trouble)
    } else (app()?.listener ?? notYet)(request, response)
  }
  const server = createServer(
    { maxHeaderSize: 16_384, connectionsCheckingInterval: 1_000, requireHostHeader: false },
    listener,
  )
  // A body that a caller asks leave to send is only wanted from whoever may call, and if it is not too large.
  server.on('checkContinue', listener)
  // Slow or endless requests must not hold a connection for ever.
  server.headersTimeout = 10_000
  server.requestTimeout = 60_000
  server.keepAliveTimeout = 65_000
  server.maxHeadersCount = 100
  server.maxConnections = 10_000
  server.on('clientError', (error, duplex) => {
    const socket = duplex as Socket
    if (refused.has(socket)) socket.destroySoon()
    else answerUnreadable(error, socket, app()?.isAnswering(socket) ?? false)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(explained(error, host, port)))
    server.listen(port, host, resolve)
  })
  const { port: bound } = server.address() as AddressInfo
  return { server, url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}` }
}

const notYet: RequestListener = (request, response) => {
  if (request.url === '/healthz') {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('ok\n')
    return
  }
  refuse(response, new GatewayError('overloaded', 'the gateway is starting; try again', { retryAfter: 1 }))
}

// Nobody reads what may follow the head.
function refuse(response: ServerResponse, error: GatewayError): void {
  const { status, headers, body } = renderError('relay', error, randomUUIDv7())
  response.writeHead(status, { ...headers, connection: 'close' }).end(body)
}

const EXPLAINED = new Map<string | undefined, (host: string, port: number) => string>([
  [
    'EADDRINUSE',
    (host, port) => `port ${port} of ${host} is taken: stop what listens there, or set PORT to another`,
  ],
  [
    'EACCES',
    (host, port) =>
      `port ${port} of ${host} needs more rights than this user has: set PORT to one above 1023`,
  ],
  ['EADDRNOTAVAIL', (host) => `${host} is no address of this machine: set HOST to one that is`],
  ['ENOTFOUND', (host) => `${host} is no address of this machine: set HOST to one that is`],
])

function explained(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const told = EXPLAINED.get(error.code)?.(host, port)
  return told === undefined ? error : new Error(told, { cause: error })
}
