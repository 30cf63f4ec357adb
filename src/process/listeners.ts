import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from 'node:net'
import process from 'node:process'

/** How many sockets listen on one address. */
const SOCKETS = 32
/**
 * Connections that may wait to be accepted, at each of them; the system may allow fewer. Beyond it they are
 * reset, as thousands that come at one moment would be by the 511 that are usual.
 */
const BACKLOG = 4_096
/** Whether several may, with the kernel spreading connections over them. */
const CAN_SHARE = process.platform === 'linux'

/** Where to listen. */
export interface Address {
  readonly host: string
  /** 0 = any free one. */
  readonly port: number
}

/** What listens. */
export interface Listeners {
  readonly port: number
  /** Ends the listening, and lets connections be. */
  close(): void
}

/**
 * Listens through several sockets: of each, one connection is taken in a turn of the event loop, whatever
 * waits. With a single one, a thousand clients that come at once to a gateway that has much to do would wait
 * for a thousand turns where nobody sees them, neither served nor refused. Rejects as `listen` does.
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
  // Asked for in a way that nobody may share, or two gateways could take the same address.
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
