import { lookup } from 'node:dns/promises'
import * as net from 'node:net'
import { getSystemErrorName } from 'node:util'
import { type Address, SOCKETS_PER_ADDRESS } from '../listeners.ts'
import type { WorkerProcess } from './worker-process.ts'

/** A socket that this process binds and on which workers listen. */
export interface SharedSocket {
  close(): void
}

/**
 * Flag of libuv, Node's I/O library, that allows several sockets with one address. The kernel distributes
 * connections among them.
 */
const REUSE_PORT = 2

/**
 * Binds a socket without listening on it, as `node:cluster` does for its workers. The public
 * `net.BoundSocket` is not used, because it cannot be passed to another process. Returns a system error
 * number if binding fails.
 */
const { _createServerHandle: bindSocket } = net as unknown as {
  readonly _createServerHandle: (
    address: string,
    port: number,
    family: number,
    descriptor: undefined,
    flags: number,
  ) => SharedSocket | number
}

/**
 * The sockets on which all workers listen. This process keeps them open too, so that a waiting connection is
 * not lost if the worker that should accept it ends. Each socket is assigned to a worker by number; while
 * that worker does not run, another one listens on it.
 */
export class SharedSockets {
  readonly #sockets: readonly SharedSocket[]
  readonly #workers: number
  /** Indexes of the sockets on which each worker listens. */
  readonly #given = new Map<WorkerProcess, ReadonlySet<number>>()

  private constructor(sockets: readonly SharedSocket[], workers: number) {
    this.#sockets = sockets
    this.#workers = workers
  }

  /** Binds sockets for this number of workers. Rejects with a system error. */
  static async bind({ host, port }: Address, workers: number): Promise<SharedSockets> {
    const { address, family } = await lookup(host)
    const sockets: SharedSocket[] = []
    while (sockets.length < workers * Math.ceil(SOCKETS_PER_ADDRESS / workers)) {
      const socket = bindSocket(address, port, family, undefined, REUSE_PORT)
      if (typeof socket === 'number') {
        for (const bound of sockets) bound.close()
        throw Object.assign(new Error(`${address} cannot be bound`), { code: getSystemErrorName(socket) })
      }
      sockets.push(socket)
    }
    return new SharedSockets(sockets, workers)
  }

  /**
   * Divides the sockets among these workers. A worker that is not among them keeps its sockets until it is.
   */
  divide(workers: readonly WorkerProcess[]): void {
    if (workers.length === 0) return
    const wanted = new Map(workers.map((worker) => [worker, new Set<number>()]))
    for (const place of this.#sockets.keys()) {
      const own = workers.find(({ index }) => index === 1 + (place % this.#workers))
      const listener = own ?? workers[Math.floor(place / this.#workers) % workers.length]
      if (listener) wanted.get(listener)?.add(place)
    }
    for (const [worker, places] of wanted) {
      const given = this.#given.get(worker) ?? new Set()
      for (const [place, socket] of this.#sockets.entries())
        if (places.has(place) && !given.has(place)) worker.giveSocket(place, socket)
        else if (given.has(place) && !places.has(place)) worker.takeSocketBack(place)
      this.#given.set(worker, places)
    }
  }

  /** Forgets a worker that has ended. */
  drop(worker: WorkerProcess): void {
    this.#given.delete(worker)
  }

  /** Closes the sockets in this process. Workers that listen on them continue. */
  close(): void {
    for (const socket of this.#sockets) socket.close()
  }
}
