import { randomUUIDv7 } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type ClientAddresses,
  type ConnectionFigures,
  type ConnectionLimits,
  HttpServer,
  type Refusal,
} from '@sluice/http1'
import { addressBlock } from '../accounts/authentication/address-block.ts'
import { peerAddress, withoutIpv6Mapping } from '../accounts/authentication/trusted-peer.ts'
import { renderError } from '../api/envelopes.ts'
import { areaOfUnknownPath, pathOf } from '../api/paths.ts'
import type { App } from './app.ts'
import { isLoopback } from '../domain/ip-allow-list.ts'
import { GatewayError } from '../errors.ts'
import { gatewayErrorOf } from '../http/gateway-error.ts'
import { HEADER_NAMES, type RequestListener } from '../http/request.ts'
import { type Address, type Listeners, listenOnManySockets } from './listeners.ts'

/**
 * Maximum number of connections. The system must allow twice as many open files, because each may need a
 * connection to an upstream.
 */
const MAX_CONNECTIONS = 10_000
/** Share of all connections that one address block may have. */
const BLOCK_SHARE = 1 / 2
/** Share of all connections that must not be occupied by idle ones. */
const RESERVE_SHARE = 1 / 20

/** Milliseconds without requests that count as a pause, in which the server may stop listening. */
const PAUSE_MS = 80
/** Milliseconds between two checks for new requests. */
const SAMPLE_MS = 10
/** Maximum milliseconds for which the server waits for a pause before it stops listening. */
const MAX_LISTENING_MS = 2_000
/**
 * Milliseconds for which connections stay open after the end of listening, for requests that are still
 * arriving.
 */
const LINGER_MS = 1_000

/** The gateway's HTTP server, which is listening. */
export interface ListeningServer {
  readonly url: string
  readonly connections: ConnectionFigures
  /** A warning for the operator if the system allows fewer connections than the maximum. */
  readonly fewConnections: string | undefined
  /**
   * Stops listening as soon as no requests arrive for a moment, because connections that the system has
   * already accepted would be cut off. (A load balancer stops sending requests when readiness checks fail.)
   * Open connections are kept for another second, for requests that are still arriving. Resolves after that,
   * when no client is connected, or after `maxMs`; from then on idle connections are closed.
   */
  stopListening(maxMs: number): Promise<void>
  /** Stops listening, and closes all connections. */
  close(): void
}

/** The gateway's HTTP server, which is not listening yet. */
export interface PreparedServer extends Pick<ListeningServer, 'connections' | 'fewConnections' | 'close'> {
  /** Listens on an address; may be called once. Rejects with an error message for the operator. */
  listen(address: Address, onSockets: typeof listenOnManySockets): Promise<ListeningServer>
}

/**
 * Listens at once, so that an occupied address is noticed early. Calls get a 503 until `app` returns the
 * application. Rejects with an error message for the operator.
 */
export async function listen(address: Address, app: () => App | undefined): Promise<ListeningServer> {
  return prepareServer(app).listen(address, listenOnManySockets)
}

/** Creates the HTTP server without listening. Calls get a 503 until `app` returns the application. */
export function prepareServer(app: () => App | undefined): PreparedServer {
  const limits = connectionLimits(openFilesLimit())
  const server = new HttpServer({
    headerNames: HEADER_NAMES,
    listener: (request, response) => (app()?.listener ?? startingListener)(request, response),
    refusalFor: (error, url) => renderedError(gatewayErrorOf(error), url),
    limits,
    clientAddresses: clientAddressesOf(app),
  })
  const fewConnections =
    limits.total < MAX_CONNECTIONS
      ? `${limits.total} connections can be open at one time; for ${MAX_CONNECTIONS}, allow ${2 * MAX_CONNECTIONS} open files (ulimit -n)`
      : undefined
  return {
    connections: server.figures,
    fewConnections,
    close: () => server.close(),
    async listen(address, onSockets) {
      const listeners = await onSockets(address, (socket) => server.accept(socket)).catch(
        (error: NodeJS.ErrnoException) => {
          server.close()
          throw explainError(error, address)
        },
      )
      return listeningServer(server, listeners, { host: address.host, fewConnections })
    },
  }
}

function listeningServer(
  server: HttpServer,
  listeners: Listeners,
  { host, fewConnections }: { readonly host: string; readonly fewConnections: string | undefined },
): ListeningServer {
  let closingIdle: NodeJS.Timeout | undefined
  return {
    url: urlOfAddress({ host, port: listeners.port }),
    connections: server.figures,
    fewConnections,
    async stopListening(maxMs) {
      const startMs = performance.now()
      await waitForPause(server, startMs + Math.min(MAX_LISTENING_MS, maxMs))
      listeners.close()
      const endMs = Math.min(performance.now() + LINGER_MS, startMs + maxMs)
      while (server.connections > 0 && performance.now() < endMs) await delay(20)
      closingIdle = setInterval(() => server.closeIdle(), 50)
    },
    close() {
      listeners.close()
      clearInterval(closingIdle)
      server.close()
    },
  }
}

export function urlOfAddress({ host, port }: Address): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Maximum number of open files and sockets of this process; undefined if the system does not state it. */
export function openFilesLimit(limitsFile = '/proc/self/limits'): number | undefined {
  let limits: string
  try {
    limits = readFileSync(limitsFile, 'utf8')
  } catch {
    return undefined
  }
  const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? []
  return soft === undefined ? undefined : Number(soft)
}

/** Connection limits that follow from the maximum number of open files. */
export function connectionLimits(openFiles = Number.POSITIVE_INFINITY): ConnectionLimits {
  const total = Math.min(MAX_CONNECTIONS, Math.floor(openFiles / 2))
  return {
    total,
    perBlock: Math.ceil(total * BLOCK_SHARE),
    reserve: Math.ceil(total * RESERVE_SHARE),
  }
}

function clientAddressesOf(app: () => App | undefined): ClientAddresses {
  return {
    peerAt(address) {
      const plain = withoutIpv6Mapping(address)
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
  // Count checks instead of time: if the event loop is late, time passes without requests being seen.
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
  return renderError(areaOfUnknownPath(pathOf(url)), error, randomUUIDv7())
}

const EXPLANATIONS = new Map<string | undefined, (host: string, port: number) => string>([
  [
    'EADDRINUSE',
    (host, port) =>
      `port ${port} of ${host} is taken: stop the program that listens there, or set PORT to another`,
  ],
  [
    'EACCES',
    (host, port) =>
      `port ${port} of ${host} needs more rights than this user has: set PORT to one above 1023`,
  ],
  ['EADDRNOTAVAIL', (host) => `${host} is not an address of this machine: set HOST to one that is`],
  ['ENOTFOUND', (host) => `${host} is not an address of this machine: set HOST to one that is`],
])

/** Explains to the operator why the address cannot be used. */
export function explainError(error: NodeJS.ErrnoException, { host, port }: Address): Error {
  const explanation = EXPLANATIONS.get(error.code)?.(host, port)
  return explanation === undefined ? error : new Error(explanation, { cause: error })
}
