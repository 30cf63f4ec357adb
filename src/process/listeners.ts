import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from 'node:net'
import process from 'node:process'

/** Sockets that listen on one address. */
const SOCKETS = 32
/**
 * Connections that may wait at each socket; the system may allow fewer. Further ones are reset, which the
 * usual 511 would mean for thousands that come at once.
 */
const BACKLOG = 4_096
/** Whether the kernel can spread connections over several sockets of one address. */
const CAN_SHARE = process.platform === 'linux'

/** Address to listen on. */
export interface Address {
  readonly host: string
  /** Port number; 0 = any free one. */
  readonly port: number
}

/** Sockets that listen on one address. */
export interface Listeners {
  readonly port: number
  /** Ends the listening; connections stay open. */
  close(): void
}

/**
 * Listens with several sockets: Node.js accepts one connection of each in a turn of the event loop. With a
 * single socket, the last of a thousand clients would wait a thousand turns of a busy loop, neither served
 * nor refused. Rejects as `listen` does.
 */
export async function listenOnManySockets(
  { host, port }: Address,
  accept: (socket: Socket) => void,
): Promise<Listeners> {
  const listener = (): Server =>
    createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, accept)
  if (!CAN_SHARE) {
    const only = listener()
    await listening(only, { host, port })
    return { port: portOf(only), close: () => only.close() }
  }
  // The first socket is not shared, or two gateways could take the same address.
  const first = createServer()
  await listening(first, { host, port })
  const free = portOf(first)
  await new Promise((resolve) => first.close(resolve))
  const all = Array.from({ length: SOCKETS }, listener)
  await Promise.all(all.map((each) => listening(each, { host, port: free, reusePort: true })))
  return {
    port: free,
    close() {
      for (const each of all) each.close()
    },
  }
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
