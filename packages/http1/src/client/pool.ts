import { type UpstreamResponseListener, type UpstreamRequest, TransportError } from './upstream-request.ts'
import { PendingRequest, type RequestToSend } from './pending-request.ts'
import { UpstreamConnection, type UpstreamConnectionOwner } from './upstream-connection.ts'
import type { Destination } from './destination.ts'
import { sendAtTurnEnd } from './event-loop-turn.ts'

/** The owner of a pool: the methods that the pool calls. */
export interface PoolOwner<Target extends Destination> {
  /** Names, in lower case, of response headers to read in addition to `content-type` and `retry-after`. */
  readonly readHeaders: ReadonlySet<string>
  /** Notes that a connection was opened. */
  onOpened(): void
  /** Notes that the upstream sent bytes without a request. */
  onUnsolicited(destination: Target): void
  /** Whether the pool's connections may carry more than one request. */
  mayReuse(pool: Pool<Target>): boolean
  /** Notes a change in the number of idle connections. */
  onIdleChange(difference: number): void
}

/**
 * Connections to one destination. Each request has a connection for itself; of the idle connections, the most
 * recently used one is reused first.
 */
export class Pool<Target extends Destination = Destination> implements UpstreamConnectionOwner {
  readonly destination: Target
  /** Whether the destination is no longer configured. */
  isRetired = false
  readonly #owner: PoolOwner<Target>
  readonly #all = new Set<UpstreamConnection>()
  readonly #idle: UpstreamConnection[] = []
  /** Number of requests that have no connection yet. */
  #waiting = 0
  /** Number of connections that will become idle in the next turn of the event loop. */
  #becomingIdle = 0
  #isClosed = false

  constructor(destination: Target, owner: PoolOwner<Target>) {
    this.destination = destination
    this.#owner = owner
  }

  /** Whether the pool has neither connections nor requests. */
  get isEmpty(): boolean {
    return this.#all.size === 0 && this.#waiting === 0
  }

  /** Number of idle connections. */
  get idle(): number {
    return this.#idle.length
  }

  /** Sends a request over an idle connection, or over a new one if there is none. */
  send(request: RequestToSend, listener: UpstreamResponseListener): UpstreamRequest {
    const pending = new PendingRequest(request, listener, this.#assignConnection)
    this.#waiting += 1
    sendAtTurnEnd(pending)
    return pending
  }

  // The connection is chosen only when the request is written: in this turn of the event loop all connections
  // were read, and those that received bytes without a request were closed.
  readonly #assignConnection = (request: PendingRequest): void => {
    this.#waiting -= 1
    if (request.isOver) return
    if (this.#isClosed) {
      request.isOver = true
      return request.listener.onError(new TransportError('connection closed', false))
    }
    if (this.#idle.length === 0 && this.#becomingIdle > 0 && !request.hasWaited) {
      request.hasWaited = true
      this.#waiting += 1
      return sendAtTurnEnd(request)
    }
    const connection = this.#takeIdle() ?? this.#open(request.request.connectMs)
    connection.carry(request)
  }

  get readHeaders(): ReadonlySet<string> {
    return this.#owner.readHeaders
  }

  mayKeepAlive(): boolean {
    if (!this.#owner.mayReuse(this)) return false
    this.#becomingIdle += 1
    return true
  }

  onIdle(connection: UpstreamConnection): void {
    this.#becomingIdle -= 1
    if (!connection.isUsable || !this.#owner.mayReuse(this)) return connection.close()
    this.#idle.push(connection)
    this.#owner.onIdleChange(1)
  }

  onUnsolicited(): void {
    this.#owner.onUnsolicited(this.destination)
  }

  onClosed(connection: UpstreamConnection): void {
    this.#all.delete(connection)
    const index = this.#idle.indexOf(connection)
    if (index === -1) return
    this.#idle.splice(index, 1)
    this.#owner.onIdleChange(-1)
  }

  /** Closes the connections whose deadline has passed. */
  tick(nowMs: number): void {
    for (const connection of this.#all) connection.tick(nowMs)
  }

  /** Closes the idle connection that has been unused for longest. */
  closeOldestIdle(): void {
    this.#idle[0]?.close()
  }

  /** Closes the idle connections. */
  closeIdle(): void {
    for (const connection of this.#idle.toReversed()) connection.close()
  }

  /** Closes every connection; later requests fail. */
  close(): void {
    this.#isClosed = true
    for (const connection of this.#all) connection.close()
  }

  #takeIdle(): UpstreamConnection | undefined {
    const connection = this.#idle.pop()
    if (connection) this.#owner.onIdleChange(-1)
    return connection
  }

  #open(connectMs: number): UpstreamConnection {
    const connection = new UpstreamConnection(this.destination.origin, connectMs, performance.now(), this)
    this.#all.add(connection)
    this.#owner.onOpened()
    return connection
  }
}
