import type { Socket } from 'node:net'
import { Roster } from '../domain/roster.ts'
import type { GatewayError } from '../errors.ts'
import { Connection, type ConnectionOwner, type Refusal } from './connection.ts'
import type { Request } from './request.ts'
import type { Response } from './response.ts'

const LOOK_MS = 1_000

/** Answers a request; the body may still be on its way. */
export type RequestListener = (request: Request, response: Response) => void

/** What a server does. */
export interface ServerParts {
  readonly listener: RequestListener
  /** What is said to who sends what is no request, or takes too long to. */
  readonly refusal: (error: GatewayError, url: string | undefined) => Refusal
  readonly maxConnections: number
}

/**
 * An HTTP/1.1 server, without what it listens on. Callers have ten seconds to begin with a request, ten more for its head, sixty for
 * its body, and 65 from one to the next.
 */
export class HttpServer implements ConnectionOwner {
  readonly #parts: ServerParts
  readonly #connections = new Roster<Connection>()
  readonly #clock: NodeJS.Timeout
  #isClosed = false
  /** Requests that came so far. */
  requests = 0

  constructor(parts: ServerParts) {
    this.#parts = parts
    this.#clock = setInterval(() => this.#look(), LOOK_MS).unref()
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#connections.size
  }

  /** Serves whoever connected. The socket is expected to be left open when its other side ends, and to be unread. */
  accept(socket: Socket): void {
    if (this.#isClosed || this.#connections.size >= this.#parts.maxConnections) socket.destroy()
    else this.#connections.add(new Connection(socket, this))
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
  asked(request: Request, response: Response): void {
    this.requests += 1
    this.#parts.listener(request, response)
  }

  /** Called by connections alone. */
  refusal(error: GatewayError, url: string | undefined): Refusal {
    return this.#parts.refusal(error, url)
  }

  /** Called by connections alone. */
  closed(connection: Connection): void {
    this.#connections.delete(connection)
  }

  #look(): void {
    for (const connection of this.#connections) connection.look()
  }
}
