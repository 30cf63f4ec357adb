import type { Server, Socket } from 'node:net'
import process from 'node:process'
import { type Address, listenerFor, type Listeners, listenOn } from '../listeners.ts'

/**
 * The main process's order to start or stop listening on a socket, by its index. With `give`, the socket
 * itself is sent too.
 */
export type SocketInstruction = { readonly give: number } | { readonly takeBack: number }

/** The sockets that the main process has given to this worker. */
export class SocketsFromOwner {
  readonly #servers = new Map<number, Server>()
  readonly #first = Promise.withResolvers<void>()

  constructor() {
    this.#first.promise.catch(() => {})
  }

  /** Resolves when the worker listens; rejects if it cannot. */
  get listening(): Promise<void> {
    return this.#first.promise
  }

  /** Listens on each socket that is received, until it is taken back. */
  readonly listen = ({ port }: Address, accept: (socket: Socket) => void): Promise<Listeners> => {
    const onOrder = (order: SocketInstruction, socket: unknown): void => {
      if ('takeBack' in order) {
        this.#servers.get(order.takeBack)?.close()
        this.#servers.delete(order.takeBack)
        return
      }
      const server = listenerFor(accept)
      this.#servers.set(order.give, server)
      listenOn(server, socket).then(this.#first.resolve, this.#first.reject)
    }
    process.on('message', onOrder)
    return Promise.resolve({
      port,
      close: () => {
        process.off('message', onOrder)
        for (const server of this.#servers.values()) server.close()
      },
    })
  }
}
