import { type Answer, type Exchange, TransportError } from '../upstream-request.ts'
import { CallUnderWay, type WireRequest } from './pending-request.ts'
import { Connection, type ConnectionOwner } from './upstream-connection.ts'
import type { Destination } from './destination.ts'
import { departSoon } from './turn-end.ts'

/** What a pool tells of itself, and asks. */
export interface PoolOwner {
  /** It has opened a connection. */
  opened(): void
  /** The upstream sent bytes that nobody asked for. */
  spokeUnasked(destination: Destination): void
  /** Whether its connections may carry more than one call. */
  mayReuse(pool: Pool): boolean
  /** It keeps so many free connections more, or fewer. */
  keeps(difference: number): void
}

/**
 * The connections of one channel with one key: each call has one for itself, and those that are free are used
 * again, the latest first.
 */
export class Pool implements ConnectionOwner {
  readonly destination: Destination
  /** No channel goes there any more. */
  isRetired = false
  readonly #owner: PoolOwner
  readonly #all = new Set<Connection>()
  readonly #free: Connection[] = []
  /** Calls that have not departed yet, and connections that are about to be free. */
  #waiting = 0
  #resting = 0
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
  get free(): number {
    return this.#free.length
  }

  /** Sends a request over a connection that is free, or a new one. */
  send(request: WireRequest, answer: Answer): Exchange {
    const call = new CallUnderWay(request, answer, this.#leave)
    this.#waiting += 1
    departSoon(call)
    return call
  }

  // A connection is chosen at the moment of writing: whatever had arrived on it was read in this turn, and
  // closed it.
  readonly #leave = (call: CallUnderWay): void => {
    this.#waiting -= 1
    if (call.isOver) return
    if (this.#isClosed) {
      call.isOver = true
      return call.answer.failed(new TransportError('connection closed', false))
    }
    if (this.#free.length === 0 && this.#resting > 0 && !call.hasWaited) {
      call.hasWaited = true
      this.#waiting += 1
      return departSoon(call)
    }
    const connection = this.#takeFree() ?? this.#open(call.request.connectMs)
    connection.carry(call)
  }

  mayKeep(): boolean {
    if (!this.#owner.mayReuse(this)) return false
    this.#resting += 1
    return true
  }

  rested(connection: Connection): void {
    this.#resting -= 1
    if (!connection.isUsable || !this.#owner.mayReuse(this)) return connection.close()
    this.#free.push(connection)
    this.#owner.keeps(1)
  }

  spokeUnasked(): void {
    this.#owner.spokeUnasked(this.destination)
  }

  closed(connection: Connection): void {
    this.#all.delete(connection)
    const index = this.#free.indexOf(connection)
    if (index === -1) return
    this.#free.splice(index, 1)
    this.#owner.keeps(-1)
  }

  /** Gives up what is due. */
  tick(nowMs: number): void {
    for (const connection of this.#all) connection.tick(nowMs)
  }

  /** Closes the free connection that was used longest ago. */
  closeOldest(): void {
    this.#free[0]?.close()
  }

  /** Closes the connections that carry no call. */
  closeFree(): void {
    for (const connection of this.#free.toReversed()) connection.close()
  }

  /** Closes every connection, and opens no more. */
  close(): void {
    this.#isClosed = true
    for (const connection of this.#all) connection.close()
  }

  #takeFree(): Connection | undefined {
    const connection = this.#free.pop()
    if (connection) this.#owner.keeps(-1)
    return connection
  }

  #open(connectMs: number): Connection {
    const connection = new Connection(this.destination.origin, connectMs, performance.now(), this)
    this.#all.add(connection)
    this.#owner.opened()
    return connection
  }
}
