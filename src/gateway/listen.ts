import { randomUUIDv7 } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type ClientAddresses,
  type ConnectionFigures,
  type ConnectionLimits,
  HttpServer,
  type Refusal,
  type Response,
} from '@sluice/http1'
import { addressBlock } from '../accounts/authentication/address-block.ts'
import { peerAddress, withoutIpv6Mapping } from '../accounts/authentication/trusted-peer.ts'
import { renderError } from '../api/envelopes.ts'
import { healthz, metricsEndpoint, readyz } from '../api/monitoring.ts'
import { areaOfUnknownPath, pathOf } from '../api/paths.ts'
import { pathNotFound } from '../api/route-table.ts'
import type { App } from './app.ts'
import { isLoopback } from '../domain/ip-allow-list.ts'
import type { ListenAddress } from '../domain/listen-address.ts'
import { GatewayError } from '../errors.ts'
import { withoutBasePath } from '../http/base-path.ts'
import { gatewayErrorOf } from '../http/gateway-error.ts'
import { HEADER_NAMES, type RequestListener } from '../http/request.ts'
import { type Listeners, listenOnManySockets, listenOnOneSocket } from './listeners.ts'

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

/** The gateway's HTTP server. */
export interface GatewayServer {
  readonly connections: ConnectionFigures
  /** A warning for the operator if the system allows fewer connections than the maximum. */
  readonly fewConnections: string | undefined
  /**
   * Listens on an address; may be called once. Returns the URL. With `sharesPort`, other nodes of this machine
   * may listen on the same address. Rejects with an error message for the operator.
   */
  listen(address: ListenAddress, options?: { readonly sharesPort: boolean }): Promise<string>
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

/** Creates the HTTP server. Calls get a 503 until `app` returns the application. */
export function gatewayServer(app: () => App | undefined): GatewayServer {
  const limits = connectionLimits(openFilesLimit())
  const server = httpServer(app, limits, (request, response) =>
    (app()?.listener ?? startingListener)(request, response),
  )
  let listeners: Listeners | undefined
  let closingIdle: NodeJS.Timeout | undefined
  return {
    connections: server.figures,
    fewConnections:
      limits.total < MAX_CONNECTIONS
        ? `${limits.total} connections can be open at one time; for ${MAX_CONNECTIONS}, allow ${2 * MAX_CONNECTIONS} open files (ulimit -n)`
        : undefined,
    async listen(address, options) {
      try {
        listeners = await listenOnManySockets(address, (socket) => server.accept(socket), options)
      } catch (error) {
        throw explainError(error as NodeJS.ErrnoException, address, { port: 'PORT', host: 'HOST' })
      }
      return urlOfAddress({ host: address.host, port: listeners.port })
    },
    async stopListening(maxMs) {
      const startMs = performance.now()
      await waitForPause(server, startMs + Math.min(MAX_LISTENING_MS, maxMs))
      listeners?.close()
      const endMs = Math.min(performance.now() + LINGER_MS, startMs + maxMs)
      while (server.connections > 0 && performance.now() < endMs) await delay(20)
      closingIdle = setInterval(() => server.closeIdle(), 50)
    },
    close() {
      listeners?.close()
      clearInterval(closingIdle)
      server.close()
    },
  }
}

/** Paths of `options.admin_listen`. */
const ADMIN_PATHS: ReadonlySet<string> = new Set([healthz.path, readyz.path, metricsEndpoint.path])
/** Limits for connections to `options.admin_listen`, which has few clients. */
const ADMIN_LIMITS: ConnectionLimits = { total: 100, perBlock: 100, reserve: 5 }

/**
 * Listens on the address of `options.admin_listen`, which serves health checks and metrics of this node, even
 * if the main address accepts no connections. Rejects with an error message for the operator.
 */
export async function listenForAdmin(
  address: ListenAddress,
  app: () => App | undefined,
): Promise<{ close(): void }> {
  const server = httpServer(app, ADMIN_LIMITS, (request, response) => {
    const path = pathOf(withoutBasePath(request.url, app()?.basePath ?? '') ?? request.url)
    if (ADMIN_PATHS.has(path)) return (app()?.listener ?? startingListener)(request, response)
    sendError(response, pathNotFound(path, undefined), request.url)
  })
  try {
    const listeners = await listenOnOneSocket(address, (socket) => server.accept(socket))
    return {
      close() {
        listeners.close()
        server.close()
      },
    }
  } catch (error) {
    server.close()
    const setting = 'options.admin_listen'
    throw explainError(error as NodeJS.ErrnoException, address, { port: setting, host: setting })
  }
}

function httpServer(
  app: () => App | undefined,
  limits: ConnectionLimits,
  listener: RequestListener,
): HttpServer {
  return new HttpServer({
    headerNames: HEADER_NAMES,
    listener,
    refusalFor: (error, url = '') =>
      renderedError(gatewayErrorOf(error), withoutBasePath(url, app()?.basePath ?? '') ?? url),
    limits,
    clientAddresses: clientAddressesOf(app),
  })
}

/** The URL of an address. */
function urlOfAddress({ host, port }: ListenAddress): string {
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
  // The base path is not known yet.
  if (pathOf(url).endsWith('/healthz')) {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('ok\n')
    return
  }
  response.closesConnection = true
  sendError(
    response,
    new GatewayError('overloaded', 'the gateway is starting; try again', { retryAfter: 1 }),
    url,
  )
}

function sendError(response: Response, error: GatewayError, url: string): void {
  const { status, headers, body } = renderedError(error, url)
  response.writeHead(status, headers).end(body)
}

function renderedError(error: GatewayError, url = ''): Refusal {
  return renderError(areaOfUnknownPath(pathOf(url)), error, randomUUIDv7())
}

/** The settings that a refused address comes from. */
interface AddressSettings {
  readonly port: string
  readonly host: string
}

const EXPLANATIONS = new Map<
  string | undefined,
  (address: ListenAddress, settings: AddressSettings) => string
>([
  [
    'EADDRINUSE',
    ({ host, port }, set) =>
      `port ${port} of ${host} is taken: stop the program that listens there, or set ${set.port} to another`,
  ],
  [
    'EACCES',
    ({ host, port }, set) =>
      `port ${port} of ${host} needs more rights than this user has: set ${set.port} to one above 1023`,
  ],
  [
    'EADDRNOTAVAIL',
    ({ host }, set) => `${host} is not an address of this machine: set ${set.host} to one that is`,
  ],
  [
    'ENOTFOUND',
    ({ host }, set) => `${host} is not an address of this machine: set ${set.host} to one that is`,
  ],
])

/** Explains to the operator why the address cannot be used. */
function explainError(
  error: NodeJS.ErrnoException,
  address: ListenAddress,
  settings: AddressSettings,
): Error {
  const explanation = EXPLANATIONS.get(error.code)?.(address, settings)
  return explanation === undefined ? error : new Error(explanation, { cause: error })
}
