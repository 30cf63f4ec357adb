import type { Socket } from 'node:net'
import { DenseSet } from '../domain/dense-set.ts'
import type { GatewayError } from '../errors.ts'
import type { ClientConnectionOwner, Refusal } from './client-connection-owner.ts'
import { type ConnectionLimits, ConnectionShares, type Peer } from './connection-shares.ts'
import { ClientConnection } from './client-connection.ts'
import { tooManyRequestsBehindProxy } from './refusals.ts'
import type { Request } from './request.ts'
import type { Response } from './response.ts'

const TICK_MS = 1_000

/** Answers a request; the body may still be on its way. */
export type RequestListener = (request: Request, response: Response) => void

/** What a server does. */
export interface ServerParts {
  readonly listener: RequestListener
  /** The answer to a caller whose request cannot be read, takes too long, or is one too many. */
  readonly refusalFor: (error: GatewayError, url: string | undefined) => Refusal
  readonly limits: ConnectionLimits
  /** Tells callers apart; without it, all are one. */
  readonly clientAddresses?: ClientAddresses
}

/** Tells the callers of a server apart. */
export interface ClientAddresses {
  /** The peer at a socket's address. */
  peerAt(address: string): Peer
  /**
   * The address block of the client that a trusted proxy passes a request on for; undefined where it does not
   * say.
   */
  blockBehindProxy(request: Request): string | undefined
}

/** The connections of a server, in numbers. */
export interface ConnectionFigures {
  readonly open: number
  /** Connections that were turned away so far, and requests behind proxies. */
  readonly refused: number
  /** Idle connections that were closed so far to make room for others. */
  readonly displaced: number
}

const COMMON_PEER: Peer = { block: '', isProxy: false, isLoopback: true }

/**
 * An HTTP/1.1 server, without what it listens on. Callers have ten seconds to begin with a request, ten more
 * for its head, sixty for its body, and 65 from one to the next.
 */
export class HttpServer implements ClientConnectionOwner {
  readonly #parts: ServerParts
  readonly #connections = new DenseSet<ClientConnection>()
  readonly #shares: ConnectionShares
  readonly #clock: NodeJS.Timeout
  #isClosed = false
  /** Requests that came so far. */
  requests = 0

  constructor(parts: ServerParts) {
    this.#parts = parts
    this.#shares = new ConnectionShares(parts.limits)
    this.#clock = setInterval(() => this.#tick(), TICK_MS).unref()
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#connections.size
  }

  /** Its connections in numbers, as they stand whenever they are read. */
  get figures(): ConnectionFigures {
    return this.#shares
  }

  /**
   * Serves a new connection, or closes it. The socket is expected to be left open when its other side ends,
   * and to be unread.
   */
  accept(socket: Socket): void {
    const peer = this.#parts.clientAddresses?.peerAt(socket.remoteAddress ?? '') ?? COMMON_PEER
    const seat = this.#isClosed ? undefined : this.#shares.admit(peer, () => connection.destroy())
    if (!seat) {
      socket.destroy()
      return
    }
    const connection = new ClientConnection(socket, this, peer, seat)
    this.#connections.add(connection)
  }

  /** Ends the connections on which nothing is under way. */
  closeIdle(): void {
    for (const connection of this.#connections) if (connection.isIdle) connection.destroy()
  }

  /** Ends all of them. Nothing can be accepted any more. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#clock)
    for (const connection of this.#connections) connection.destroy()
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
