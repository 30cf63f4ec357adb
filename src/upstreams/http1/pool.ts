import { type UpstreamResponseListener, type UpstreamRequest, TransportError } from '../upstream-request.ts'
import { PendingRequest, type RequestToSend } from './pending-request.ts'
import { UpstreamConnection, type UpstreamConnectionOwner } from './upstream-connection.ts'
import type { Destination } from './destination.ts'
import { sendAtTurnEnd } from './turn-end.ts'

/** What a pool tells of itself, and asks. */
export interface PoolOwner {
  /** It has opened a connection. */
  onOpened(): void
  /** The upstream sent bytes that nobody asked for. */
  onUnsolicited(destination: Destination): void
  /** Whether its connections may carry more than one call. */
  mayReuse(pool: Pool): boolean
  /** It keeps so many free connections more, or fewer. */
  onIdleChange(difference: number): void
}

/**
 * The connections of one channel with one key: each call has one for itself, and those that are free are used
 * again, the latest first.
 */
export class Pool implements UpstreamConnectionOwner {
  readonly destination: Destination
  /** No channel goes there any more. */
  isRetired = false
  readonly #owner: PoolOwner
  readonly #all = new Set<UpstreamConnection>()
  readonly #idle: UpstreamConnection[] = []
  /** Calls that have not departed yet, and connections that are about to be free. */
  #waiting = 0
  #becomingIdle = 0
  #isClosed = false

  constructor(destination: Destination, owner: PoolOwner) {
    this.destination = destination
    this.#owner = owner
  }

  /** Nothing is under way or kept. */
  get isEmpty(): boolean {
    return this.#all.size === 0 && this.#waiting === 0
  }

  /** Connections that are kept for the next call. */
  get idle(): number {
    return this.#idle.length
  }

  /** Sends a request over a connection that is free, or a new one. */
  send(request: RequestToSend, listener: UpstreamResponseListener): UpstreamRequest {
    const pending = new PendingRequest(request, listener, this.#assignConnection)
    this.#waiting += 1
    sendAtTurnEnd(pending)
    return pending
  }

  // A connection is chosen at the moment of writing: whatever had arrived on it was read in this turn, and
  // closed it.
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

  /** Gives up what is due. */
  tick(nowMs: number): void {
    for (const connection of this.#all) connection.tick(nowMs)
  }

  /** Closes the free connection that was used longest ago. */
  closeOldestIdle(): void {
    this.#idle[0]?.close()
  }

  /** Closes the connections that carry no call. */
  closeIdle(): void {
    for (const connection of this.#idle.toReversed()) connection.close()
  }

  /** Closes every connection, and opens no more. */
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
