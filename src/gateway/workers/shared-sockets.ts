import { lookup } from 'node:dns/promises'
import * as net from 'node:net'
import { getSystemErrorName } from 'node:util'
import { type Address, SOCKETS_PER_ADDRESS } from '../listeners.ts'
import type { WorkerProcess } from './worker-process.ts'

/** A socket that is bound here and on which workers listen. */
export interface SharedSocket {
  close(): void
}

/**
 * Flag of libuv that allows several sockets for one address, among which the kernel distributes connections.
 */
const REUSE_PORT = 2

/**
 * Binds a socket that does not listen here, as `node:cluster` does for its workers; `net.BoundSocket`, which
 * does the same, cannot be passed to another process. Returns an error number of the system if that fails.
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
 * The sockets on which all workers listen. This process keeps them open, so that a waiting connection
 * survives the worker that would have accepted it. Each belongs to one worker, by its number; while that
 * worker is away, another one listens on it.
 */
export class SharedSockets {
  readonly #sockets: readonly SharedSocket[]
  readonly #workers: number
  /** Places of the sockets on which each worker listens. */
  readonly #given = new Map<WorkerProcess, ReadonlySet<number>>()

  private constructor(sockets: readonly SharedSocket[], workers: number) {
    this.#sockets = sockets
    this.#workers = workers
  }

  /** Binds the sockets for this number of workers; rejects with a system error. */
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
   * Divides the sockets among these workers. Other workers keep what they have until they are included again.
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

  /** Closes the sockets here; workers that listen continue. */
  close(): void {
    for (const socket of this.#sockets) socket.close()
  }
}
