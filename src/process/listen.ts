import { randomUUIDv7 } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { addressBlock } from '../auth/address-block.ts'
import { peerAddress, plainAddress } from '../auth/trusted-peer.ts'
import { renderError } from '../api/envelopes.ts'
import { pathArea, pathOf } from '../api/routing/path-area.ts'
import type { App } from '../app.ts'
import { isLoopback } from '../domain/ip-allow-list.ts'
import { GatewayError } from '../errors.ts'
import { type Address, listenOnManySockets } from './listeners.ts'
import type { Refusal } from '../server/client-connection-owner.ts'
import type { ConnectionLimits } from '../server/connection-shares.ts'
import {
  type ClientAddresses,
  type ConnectionFigures,
  HttpServer,
  type RequestListener,
} from '../server/http-server.ts'
import { openFilesLimit } from '../server/open-files.ts'

/**
 * Connections that there may be at one time, where the system allows twice as many open files: a call may
 * need one to its upstream too.
 */
const MAX_CONNECTIONS = 10_000
/** The part of them that one address block may have, and the part that is kept free of idle ones. */
const BLOCK_SHARE = 1 / 2
const RESERVE_SHARE = 1 / 20

/**
 * Calls that come while the listening is to end: it waits for a pause of so long between two, and this long
 * at the most.
 */
const PAUSE_MS = 80
/** How long one look for calls takes. */
const SAMPLE_MS = 10
const MAX_LISTENING_MS = 2_000
/** How long somebody who is connected, and about to say something, may take. */
const LINGER_MS = 1_000

/** Where connections come in. */
export interface ListeningServer {
  readonly url: string
  readonly connections: ConnectionFigures
  /** A sentence for the operator where the system allows fewer connections than there might be. */
  readonly fewConnections: string | undefined
  /**
   * Ends the listening so that no call is lost: what the system has let in would be cut off with it. It ends
   * in a pause between two calls; a balancer that asks whether this gateway is ready makes one by then.
   * Connections that are open stay so for a second more: requests are on their way on them. Resolves when
   * that time is over, or nobody is connected, or after `atMostMs`; from then on connections on which nothing
   * is under way are ended.
   */
  stopListening(atMostMs: number): Promise<void>
  /** Takes no more connections, and ends those that are open. */
  close(): void
}

/**
 * Listens at once, so that an address that is taken is known before anything is made; calls are answered with
 * 503 until there is an application. Rejects with a sentence for the operator.
 */
export async function listen(address: Address, app: () => App | undefined): Promise<ListeningServer> {
  const limits = connectionLimits(openFilesLimit())
  const server = new HttpServer({
    listener: (request, response) => (app()?.listener ?? startingListener)(request, response),
    refusalFor: renderedError,
    limits,
    clientAddresses: callersOf(app),
  })
  const { host } = address
  const listeners = await listenOnManySockets(address, (socket) => server.accept(socket)).catch(
    (error: NodeJS.ErrnoException) => {
      server.close()
      throw explained(error, address)
    },
  )
  let ending: NodeJS.Timeout | undefined
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${listeners.port}`,
    connections: server.figures,
    fewConnections:
      limits.total < MAX_CONNECTIONS
        ? `${limits.total} connections can be open at one time; for ${MAX_CONNECTIONS}, allow ${2 * MAX_CONNECTIONS} open files (ulimit -n)`
        : undefined,
    async stopListening(atMostMs) {
      const startMs = performance.now()
      await waitForPause(server, startMs + Math.min(MAX_LISTENING_MS, atMostMs))
      listeners.close()
      const endMs = Math.min(performance.now() + LINGER_MS, startMs + atMostMs)
      while (server.connections > 0 && performance.now() < endMs) await delay(20)
      ending = setInterval(() => server.closeIdle(), 50)
    },
    close() {
      listeners.close()
      clearInterval(ending)
      server.close()
    },
  }
}

/** How many connections there may be where the system allows so many open files. */
export function connectionLimits(openFiles = Number.POSITIVE_INFINITY): ConnectionLimits {
  const total = Math.min(MAX_CONNECTIONS, Math.floor(openFiles / 2))
  return {
    total,
    perBlock: Math.ceil(total * BLOCK_SHARE),
    reserve: Math.ceil(total * RESERVE_SHARE),
  }
}

function callersOf(app: () => App | undefined): ClientAddresses {
  return {
    peerAt(address) {
      const plain = plainAddress(address)
      const isProxy = app()?.clientAddress.trusts(plain) ?? false
      return { block: addressBlock(plain), isProxy, isLoopback: isLoopback(plain) }
    },
    blockBehindProxy(request) {
      const client = app()?.clientAddress(request)
      return client === undefined || client === peerAddress(request) ? undefined : addressBlock(client)
    },
  }
}

async function waitForPause(server: HttpServer, endMs: number): Promise<void> {
  // Looks are counted, not time: a late event loop has not seen yet who came meanwhile.
  let quiet = 0
  for (let { requests } = server; quiet < PAUSE_MS / SAMPLE_MS && performance.now() < endMs; ) {
    await delay(SAMPLE_MS)
    quiet = server.requests === requests ? quiet + 1 : 0
    requests = server.requests
  }
}

const startingListener: RequestListener = ({ url }, response) => {
  if (url === '/healthz') {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('ok\n')
    return
  }
  const { status, headers, body } = renderedError(
    new GatewayError('overloaded', 'the gateway is starting; try again', { retryAfter: 1 }),
    url,
  )
  response.closesConnection = true
  response.writeHead(status, headers).end(body)
}

function renderedError(error: GatewayError, url = ''): Refusal {
  return renderError(pathArea(pathOf(url)), error, randomUUIDv7())
}

const EXPLANATIONS = new Map<string | undefined, (host: string, port: number) => string>([
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

function explained(error: NodeJS.ErrnoException, { host, port }: Address): Error {
  const told = EXPLANATIONS.get(error.code)?.(host, port)
  return told === undefined ? error : new Error(told, { cause: error })
}
