import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from 'node:net'
import process from 'node:process'

/** Number of sockets that listen on one address. */
export const SOCKETS_PER_ADDRESS = 32
/**
 * Maximum number of connections that wait at each socket to be accepted; the system may allow fewer. Further
 * ones are reset. With Node's default of 511, thousands of clients that arrive at once would be reset.
 */
const BACKLOG = 4_096
/** Whether the kernel can spread connections over several sockets of one address. */
export const CAN_SHARE_ADDRESS = process.platform === 'linux'

/** Address to listen on. */
export interface Address {
  readonly host: string
  /** Port number; 0 for any free one. */
  readonly port: number
}

/** Sockets that listen on one address. */
export interface Listeners {
  readonly port: number
  /** Stops listening; connections stay open. */
  close(): void
}

/**
 * Listens with several sockets. Node.js accepts one connection per socket and turn of the event loop, so with
 * a single socket the last of a thousand clients would wait for a thousand turns of a busy loop, neither
 * served nor refused. Rejects with the system's error if the address cannot be used.
 */
export async function listenOnManySockets(
  { host, port }: Address,
  accept: (socket: Socket) => void,
): Promise<Listeners> {
  if (CAN_SHARE_ADDRESS) return listenOnEach({ host, port: await freePort({ host, port }) }, accept)
  const only = listenerFor(accept)
  await listening(only, { host, port })
  return { port: portOf(only), close: () => only.close() }
}

/**
 * Finds the port of an address. Rejects with the system's error if another process listens there: sockets
 * that share an address would not notice that, and two gateways could use the same address.
 */
export async function freePort({ host, port }: Address): Promise<number> {
  const only = createServer()
  await listening(only, { host, port })
  const free = portOf(only)
  await new Promise((resolve) => only.close(resolve))
  return free
}

async function listenOnEach({ host, port }: Address, accept: (socket: Socket) => void): Promise<Listeners> {
  const all = Array.from({ length: SOCKETS_PER_ADDRESS }, () => listenerFor(accept))
  await Promise.all(all.map((each) => listening(each, { host, port, reusePort: true })))
  return {
    port,
    close() {
      for (const each of all) each.close()
    },
  }
}

/** Makes a server that passes each new connection to `accept` before anything is read from it. */
export function listenerFor(accept: (socket: Socket) => void): Server {
  return createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, accept)
}

/** Listens on a socket that another process has bound. Rejects with the system's error if that fails. */
export function listenOn(server: Server, socket: unknown): Promise<void> {
  return whenListening(server, (onListening) => server.listen(socket, BACKLOG, onListening))
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

function listening(server: Server, options: ListenOptions): Promise<void> {
  return whenListening(server, (onListening) => server.listen({ ...options, backlog: BACKLOG }, onListening))
}

function whenListening(server: Server, listen: (onListening: () => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    listen(() => {
      server.off('error', reject)
      resolve()
    })
  })
}
