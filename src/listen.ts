import { randomUUIDv7 } from 'node:crypto'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { renderError } from './api/envelopes.ts'
import type { App } from './app.ts'
import { GatewayError } from './errors.ts'
import { listenThroughMany } from './listeners.ts'
import { answerUnreadable, headTrouble } from './unreadable.ts'

/** Where the gateway listens. */
export interface Address {
  readonly host: string
  /** 0 = any free one. */
  readonly port: number
}

/** Connections that there may be at one time. */
const MAX_CONNECTIONS = 10_000

/** Calls that come while the listening is to end: it waits for a pause of so long between two, and this long at the most. */
const PAUSE_MS = 80
const LISTENING_MS = 2_000
/** How long somebody who is connected, and about to say something, may take. */
const LINGER_MS = 1_000

/** Where connections come in. */
export interface Entrance {
  readonly url: string
  /**
   * Ends the listening so that no call is lost: what the system has let in would be cut off with it. It ends in a pause between
   * two calls; a balancer that asks whether this gateway is ready makes one by then. Connections that are open stay so for a second
   * more: requests are on their way on them. Resolves when that time is over, or nobody is connected, or after `atMostMs`; from then
   * on connections on which nothing is under way are ended.
   */
  shut(atMostMs: number): Promise<void>
  /** Takes no more connections, and ends those that are open. */
  close(): void
}

/**
 * Listens at once, so that an address that is taken is known before anything is made; calls are answered with 503 until
 * there is an application. Rejects with a sentence for the operator.
 */
export async function listen({ host, port }: Address, app: () => App | undefined): Promise<Entrance> {
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
  server.on('clientError', (error, duplex) => {
    const socket = duplex as Socket
    if (refused.has(socket)) socket.destroySoon()
    else answerUnreadable(error, socket, app()?.isAnswering(socket) ?? false)
  })
  const listeners = await listenThroughMany(server, { host, port, maxConnections: MAX_CONNECTIONS }).catch(
    (error: NodeJS.ErrnoException) => {
      throw explained(error, host, port)
    },
  )
  const { port: bound } = server.address() as AddressInfo
  let ending: NodeJS.Timeout | undefined
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    async shut(atMostMs) {
      const startMs = performance.now()
      await pauseBetweenCalls(server, startMs + Math.min(LISTENING_MS, atMostMs))
      listeners.shut()
      const endMs = Math.min(performance.now() + LINGER_MS, startMs + atMostMs)
      while (listeners.connections() > 0 && performance.now() < endMs) await delay(20)
      ending = setInterval(() => server.closeIdleConnections(), 50)
    },
    close() {
      listeners.shut()
      clearInterval(ending)
      server.closeAllConnections()
    },
  }
}

async function pauseBetweenCalls(server: Server, endMs: number): Promise<void> {
  let lastMs = performance.now()
  const called = (): void => {
    lastMs = performance.now()
  }
  server.on('request', called)
  while (performance.now() - lastMs < PAUSE_MS && performance.now() < endMs) await delay(10)
  server.off('request', called)
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
