import type { Socket } from 'node:net'
import type { CountedConnection } from './address-blocks.ts'
import type { ClientConnectionOwner, Refusal } from './client-connection-owner.ts'
import { type ConnectionLimits, ConnectionLimiter, type ConnectionPeer } from './connection-limiter.ts'
import { ClientConnection } from './client-connection.ts'
import type { HeaderNames } from './header-names.ts'
import { type RequestError, TOO_MANY_REQUESTS } from './request-errors.ts'
import type { Request } from './request.ts'
import type { Response } from './response.ts'

const TICK_MS = 1_000

/** Handles a request, whose body may still be arriving. */
export type RequestListener<Name extends string = string> = (
  request: Request<Name>,
  response: Response,
) => void

export interface HttpServerOptions<Name extends string = string> {
  /** The headers of a request that are read. */
  readonly headerNames: HeaderNames<Name>
  readonly listener: RequestListener<Name>
  /**
   * Renders the response to a request that cannot be read, takes too long, or exceeds a limit. Without this
   * option, the response is the error message as text.
   */
  readonly refusalFor?: (error: RequestError, url: string | undefined) => Refusal
  readonly limits: ConnectionLimits
  /** Determines the address blocks of clients; without it, all clients share one block. */
  readonly clientAddresses?: ClientAddresses<Name>
}

/** Determines the address blocks to which limits apply. */
export interface ClientAddresses<Name extends string = string> {
  /** Returns the peer with the address of a socket. */
  peerAt(address: string): ConnectionPeer
  /**
   * Returns the address block of the client behind a trusted proxy; undefined if the proxy does not state the
   * client's address.
   */
  blockBehindProxy(request: Request<Name>): string | undefined
}

/** Statistics of a server's connections. */
export interface ConnectionFigures {
  readonly open: number
  /** Number of refused connections since the start, plus refused requests through proxies. */
  readonly refused: number
  /** Number of idle connections that were closed since the start to make room for others. */
  readonly displaced: number
}

/** Connections that arrived in one turn of the event loop. */
class Arrivals {
  readonly connections: CountedConnection[] = []
  readonly sockets: { readonly socket: Socket; readonly peer: ConnectionPeer }[] = []

  get isEmpty(): boolean {
    return this.connections.length === 0 && this.sockets.length === 0
  }
}

const COMMON_PEER: ConnectionPeer = { block: '', isProxy: false, isLoopback: true }

/**
 * An HTTP/1.1 server, without its listening sockets. A client has 10 seconds to begin a request, 10 more for
 * its head, 60 for its body, and 65 between requests.
 */
export class HttpServer<Name extends string = string> implements ClientConnectionOwner {
  readonly #options: HttpServerOptions<Name>
  /**
   * Open connections, unordered; each stores its index. It is not a `Set`: a growing `Set` leaves its former
   * tables behind, which would keep connections in memory until a full garbage collection.
   */
  readonly #connections: ClientConnection[] = []
  readonly #shares: ConnectionLimiter
  readonly #clock: NodeJS.Timeout
  /**
   * Connections that arrived in this turn of the event loop and in the last one: those too new to be closed
   * for others, and sockets for which there was no room.
   */
  #arrived = new Arrivals()
  #beingRead = new Arrivals()
  #isTurnEndScheduled = false
  #isClosed = false
  /** Number of requests received since the start. */
  requests = 0

  constructor(options: HttpServerOptions<Name>) {
    this.#options = options
    this.#shares = new ConnectionLimiter(options.limits)
    this.#clock = setInterval(() => this.#tick(), TICK_MS).unref()
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#connections.length
  }

  /** Statistics of the connections; the returned object is updated when they change. */
  get figures(): ConnectionFigures {
    return this.#shares
  }

  /**
   * Serves a new connection, or closes it. The socket must have `allowHalfOpen`, and nothing may have been
   * read from it. If another connection must be closed to make room, this is decided at the end of the next
   * turn of the event loop: by then all connections were read, so none is closed whose request had already
   * arrived.
   */
  accept(socket: Socket): void {
    const peer = this.#options.clientAddresses?.peerAt(socket.remoteAddress ?? '') ?? COMMON_PEER
    if (this.#shares.hasRoom(peer)) this.#serve(socket, peer)
    else this.#arrived.sockets.push({ socket, peer })
    this.#scheduleTurnEnd()
  }

  #serve(socket: Socket, peer: ConnectionPeer): void {
    const counted = this.#isClosed ? undefined : this.#shares.admit(peer, () => connection.displace())
    if (!counted) {
      socket.destroy()
      return
    }
    const connection = new ClientConnection(socket, this, peer, counted)
    connection.index = this.#connections.push(connection) - 1
    this.#arrived.connections.push(counted)
  }

  #scheduleTurnEnd(): void {
    if (this.#isTurnEndScheduled) return
    this.#isTurnEndScheduled = true
    setImmediate(() => this.#endTurn())
  }

  #endTurn(): void {
    this.#isTurnEndScheduled = false
    const { connections, sockets } = this.#beingRead
    this.#beingRead = this.#arrived
    this.#arrived = new Arrivals()
    for (const counted of connections) counted.markRead()
    for (const { socket, peer } of sockets) this.#serve(socket, peer)
    if (!this.#beingRead.isEmpty || !this.#arrived.isEmpty) this.#scheduleTurnEnd()
  }

  /** Closes the idle connections. */
  closeIdle(): void {
    for (const connection of this.#connections) if (connection.isIdle) connection.destroy()
  }

  /** Closes all connections; later connections are closed at once. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#clock)
    for (const connection of this.#connections) connection.destroy()
    for (const { sockets } of [this.#arrived, this.#beingRead])
      for (const { socket } of sockets) socket.destroy()
  }

  /**
   * Passes a request to the listener, unless its client has too many under way; only connections call this.
   */
  onRequest(accepted: Request, response: Response, peer: ConnectionPeer): void {
    const request = accepted as Request<Name>
    this.requests += 1
    const client = peer.isProxy ? this.#options.clientAddresses?.blockBehindProxy(request) : undefined
    if (client !== undefined) {
      if (!this.#shares.beginRequest(client)) {
        const { status, headers, body } = this.refusalFor(TOO_MANY_REQUESTS, request.url)
        response.writeHead(status, headers).end(body)
        return
      }
      const end = (): void => this.#shares.endRequest(client)
      response.onClosed(() => {
        if (response.upgraded) response.upgraded.once('close', end)
        else end()
      })
    }
    this.#options.listener(request, response)
  }

  /** Headers of a request that are read; only connections call this. */
  get headerNames(): HeaderNames<string> {
    return this.#options.headerNames
  }

  /** Renders the response to a request that cannot be served; only connections call this. */
  refusalFor(error: RequestError, url: string | undefined): Refusal {
    return this.#options.refusalFor?.(error, url) ?? plainRefusal(error)
  }

  /** Removes a closed connection from the list; only connections call this. */
  onClosed(connection: ClientConnection): void {
    const last = this.#connections.pop() as ClientConnection
    if (last === connection) return
    this.#connections[connection.index] = last
    last.index = connection.index
  }

  #tick(): void {
    for (const connection of this.#connections) connection.tick()
  }
}

function plainRefusal({ status, message, retryAfter }: RequestError): Refusal {
  const headers: Record<string, string> = { 'content-type': 'text/plain' }
  if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter)
  return { status, headers, body: Buffer.from(`${message}\n`) }
}
