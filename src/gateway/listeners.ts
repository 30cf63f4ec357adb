import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from 'node:net'
import process from 'node:process'
import type { ListenAddress } from '../domain/listen-address.ts'

/** Number of sockets that listen on one address. */
const SOCKETS_PER_ADDRESS = 32
/**
 * Maximum number of connections that wait at each socket to be accepted; the system may allow fewer. Further
 * ones are reset. With Node's default of 511, thousands of clients that arrive at once would be reset.
 */
const BACKLOG = 4_096
/** Whether the kernel can spread connections over several sockets of one address. */
const CAN_SHARE_ADDRESS = process.platform === 'linux'

/** Sockets that listen on one address. */
export interface Listeners {
  readonly port: number
  /** Stops listening; connections stay open. */
  close(): void
}

/**
 * Listens with several sockets. Node.js accepts one connection per socket and turn of the event loop, so with
 * a single socket the last of a thousand clients would wait for a thousand turns of a busy loop, neither
 * served nor refused. With `sharesPort`, other processes may listen on the same address in the same way.
 * Rejects with the system's error if the address cannot be used.
 */
export async function listenOnManySockets(
  { host, port }: ListenAddress,
  accept: (socket: Socket) => void,
  { sharesPort = false } = {},
): Promise<Listeners> {
  if (!CAN_SHARE_ADDRESS) {
    if (sharesPort) throw new Error('options.reuse_port needs Linux, which spreads connections over nodes')
    return listenOnOneSocket({ host, port }, accept)
  }
  const given = sharesPort && port !== 0 ? port : await freePort({ host, port })
  const all = Array.from({ length: SOCKETS_PER_ADDRESS }, () => listenerFor(accept))
  const close = (): void => {
    for (const each of all) each.close()
  }
  try {
    await Promise.all(all.map((each) => listening(each, { host, port: given, reusePort: true })))
  } catch (error) {
    close()
    throw error
  }
  return { port: given, close }
}

/** Listens with a single socket. Rejects with the system's error if the address cannot be used. */
export async function listenOnOneSocket(
  { host, port }: ListenAddress,
  accept: (socket: Socket) => void,
): Promise<Listeners> {
  const only = listenerFor(accept)
  await listening(only, { host, port })
  return { port: portOf(only), close: () => only.close() }
}

/**
 * Finds the port of an address. Rejects with the system's error if another process listens there: sockets
 * that share an address would not notice that, and two gateways could use the same address.
 */
async function freePort({ host, port }: ListenAddress): Promise<number> {
  const only = createServer()
  await listening(only, { host, port })
  const free = portOf(only)
  await new Promise((resolve) => only.close(resolve))
  return free
}

/** Makes a server that passes each new connection to `accept` before anything is read from it. */
function listenerFor(accept: (socket: Socket) => void): Server {
  return createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, accept)
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

function listening(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ ...options, backlog: BACKLOG }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}
