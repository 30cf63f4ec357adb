import type { Socket } from 'node:net'
import { DenseSet } from '../domain/dense-set.ts'
import type { GatewayError } from '../errors.ts'
import type { CountedConnection } from './address-blocks.ts'
import type { ClientConnectionOwner, Refusal } from './client-connection-owner.ts'
import { type ConnectionLimits, ConnectionShares, type Peer } from './connection-shares.ts'
import { ClientConnection } from './client-connection.ts'
import { tooManyRequestsBehindProxy } from './refusals.ts'
import type { Request } from './request.ts'
import type { Response } from './response.ts'

const TICK_MS = 1_000

/** Handles a request, whose body may still be on its way. */
export type RequestListener = (request: Request, response: Response) => void

/** Parts of a server. */
export interface ServerParts {
  readonly listener: RequestListener
  /** Renders the response to a request that cannot be read, takes too long, or is one too many. */
  readonly refusalFor: (error: GatewayError, url: string | undefined) => Refusal
  readonly limits: ConnectionLimits
  /** Finds the address blocks of clients; without it, all clients share one block. */
  readonly clientAddresses?: ClientAddresses
}

/** Finds the address blocks that limits apply to. */
export interface ClientAddresses {
  /** Peer at a socket's address. */
  peerAt(address: string): Peer
  /** Address block of the client behind a trusted proxy; undefined where the proxy does not state it. */
  blockBehindProxy(request: Request): string | undefined
}

/** Counts of a server's connections. */
export interface ConnectionFigures {
  readonly open: number
  /** Refused connections since the start, and refused requests behind proxies. */
  readonly refused: number
  /** Idle connections that were closed since the start to make room for others. */
  readonly displaced: number
}

/** New connections of one turn of the event loop. */
class Arrivals {
  readonly connections: CountedConnection[] = []
  readonly sockets: { readonly socket: Socket; readonly peer: Peer }[] = []

  get isEmpty(): boolean {
    return this.connections.length === 0 && this.sockets.length === 0
  }
}

const COMMON_PEER: Peer = { block: '', isProxy: false, isLoopback: true }

/**
 * HTTP/1.1 server, without its listening sockets. A client has ten seconds to begin a request, ten more for
 * its head, sixty for its body, and 65 between requests.
 */
export class HttpServer implements ClientConnectionOwner {
  readonly #parts: ServerParts
  readonly #connections = new DenseSet<ClientConnection>()
  readonly #shares: ConnectionShares
  readonly #clock: NodeJS.Timeout
  /** New connections that cannot be displaced yet, and sockets without room, of this turn and of the last. */
  #arrived = new Arrivals()
  #beingRead = new Arrivals()
  #isTurnEndScheduled = false
  #isClosed = false
  /** Number of requests since the start. */
  requests = 0

  constructor(parts: ServerParts) {
    this.#parts = parts
    this.#shares = new ConnectionShares(parts.limits)
    this.#clock = setInterval(() => this.#tick(), TICK_MS).unref()
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#connections.size
  }

  /** Counts of connections; a live view. */
  get figures(): ConnectionFigures {
    return this.#shares
  }

  /**
   * Serves a new connection, or closes it. The socket must allow half-open, and nothing may be read of it.
   * Where another connection must be closed for it, that is decided at the end of the next turn of the event
   * loop: all connections were read in between, so that none is closed whose request had come before.
   */
  accept(socket: Socket): void {
    const peer = this.#parts.clientAddresses?.peerAt(socket.remoteAddress ?? '') ?? COMMON_PEER
    if (this.#shares.hasRoom(peer)) this.#serve(socket, peer)
    else this.#arrived.sockets.push({ socket, peer })
    this.#scheduleTurnEnd()
  }

  #serve(socket: Socket, peer: Peer): void {
    const counted = this.#isClosed ? undefined : this.#shares.admit(peer, () => connection.destroy())
    if (!counted) {
      socket.destroy()
      return
    }
    const connection = new ClientConnection(socket, this, peer, counted)
    this.#connections.add(connection)
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

  /** Closes all connections, and accepts no more. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#clock)
    for (const connection of this.#connections) connection.destroy()
    for (const { sockets } of [this.#arrived, this.#beingRead])
      for (const { socket } of sockets) socket.destroy()
  }

  /** Called by connections alone. */
  onRequest(request: Request, response: Response, peer: Peer): void {
    this.requests += 1
    const client = peer.isProxy ? this.#parts.clientAddresses?.blockBehindProxy(request) : undefined
    if (client !== undefined) {
      if (!this.#shares.beginRequest(client)) {
        const { status, headers, body } = this.#parts.refusalFor(tooManyRequestsBehindProxy(), request.url)
        response.writeHead(status, headers).end(body)
        return
      }
      response.onClosed(() => this.#shares.endRequest(client))
    }
    this.#parts.listener(request, response)
  }

  /** Called by connections alone. */
  refusalFor(error: GatewayError, url: string | undefined): Refusal {
    return this.#parts.refusalFor(error, url)
  }

  /** Called by connections alone. */
  onClosed(connection: ClientConnection): void {
    this.#connections.delete(connection)
  }

  #tick(): void {
    for (const connection of this.#connections) connection.tick()
  }
}
