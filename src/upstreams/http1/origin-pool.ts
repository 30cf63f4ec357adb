import type { LookupFunction } from 'node:net'
import type { Answer, Exchange } from '../exchange.ts'
import { Connection, type ConnectionOwner, type WireRequest } from './connection.ts'
import { type Origin, originOf } from './origin.ts'

/** The connections to one origin: each call has one for itself, and those that are free are used again, the latest first. */
export class OriginPool implements ConnectionOwner {
  /** As a request names it. */
  readonly host: string
  readonly #origin: Origin
  readonly #onOpened: () => void
  readonly #all = new Set<Connection>()
  readonly #free: Connection[] = []

  /** `onOpened` hears of every new connection; `lookup` finds the addresses of the host, in place of the system. */
  constructor(url: URL, onOpened: () => void, lookup?: LookupFunction) {
    this.host = url.host
    this.#origin = originOf(url, lookup)
    this.#onOpened = onOpened
  }

  /** Sends a request over a connection that is free, or a new one, which may take `connectMs` to open. */
  send(connectMs: number, request: WireRequest, answer: Answer): Exchange {
    const connection = this.#free.pop() ?? this.#open(connectMs)
    return connection.carry(request, answer)
  }

  becameFree(connection: Connection): void {
    this.#free.push(connection)
  }

  closed(connection: Connection): void {
    this.#all.delete(connection)
    const index = this.#free.indexOf(connection)
    if (index !== -1) this.#free.splice(index, 1)
  }

  /** Gives up what is due; tells how many connections there are. */
  tick(nowMs: number): number {
    for (const connection of this.#all) connection.tick(nowMs)
    return this.#all.size
  }

  /** Closes every connection. */
  close(): void {
    for (const connection of this.#all) connection.close()
  }

  #open(connectMs: number): Connection {
    const connection = new Connection(this.#origin, connectMs, performance.now(), this)
    this.#all.add(connection)
    this.#onOpened()
    return connection
  }
}
