import type { Server } from 'node:http'
import { type AddressInfo, createServer, type ListenOptions, Server as Listener } from 'node:net'
import process from 'node:process'

/** How many sockets listen on one address. */
const LISTENERS = 32
/**
 * Connections that may wait to be accepted, at each of them; the system may allow fewer. Beyond it they are reset, as thousands
 * that come at one moment would be by the 511 that are usual.
 */
const BACKLOG = 4_096
/** Whether several may, with the kernel spreading connections over them. */
const CAN_SHARE = process.platform === 'linux'

/** Where to listen, and how many connections there may be at one time. */
export interface Listening {
  readonly host: string
  /** 0 = any free one. */
  readonly port: number
  readonly maxConnections: number
}

/** What listens. */
export interface Listeners {
  /** Connections that are open. */
  connections(): number
  /** Ends the listening, and lets connections be. */
  shut(): void
}

/**
 * Makes a server listen, through several sockets: of each, one connection is taken in a turn of the event loop, whatever waits. With
 * a single one, a thousand clients that come at once to a gateway that has much to do would wait for a thousand turns where
 * nobody sees them, neither served nor refused. Rejects as `listen` does.
 */
export async function listenThroughMany(
  server: Server,
  { host, port, maxConnections }: Listening,
): Promise<Listeners> {
  const connections = bound(server, maxConnections)
  if (!CAN_SHARE) {
    await listening(server, { host, port })
    return { connections, shut: () => shut(server) }
  }
  // Asked for in a way that nobody may share, or two gateways could take the same address.
  const first = createServer()
  await listening(first, { host, port })
  const { port: free } = first.address() as AddressInfo
  await new Promise((resolve) => first.close(resolve))
  const more = Array.from({ length: LISTENERS - 1 }, () =>
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit('connection', socket)),
  )
  const all: Listener[] = [server, ...more]
  await Promise.all(all.map((listener) => listening(listener, { host, port: free, reusePort: true })))
  return { connections, shut: () => all.forEach(shut) }
}

// Not an HTTP server's own `close`, which ends idle connections in the middle of what arrives on them.
function shut(listener: Listener): void {
  Listener.prototype.close.call(listener)
}

/** Ends connections beyond so many; tells how many there are. A server's own limit would count those of one listener. */
function bound(server: Server, maxConnections: number): () => number {
  let open = 0
  server.prependListener('connection', (socket) => {
    open += 1
    socket.once('close', () => (open -= 1))
    if (open > maxConnections) socket.destroy()
  })
  return () => open
}

function listening(listener: Listener, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    listener.once('error', reject)
    listener.listen({ ...options, backlog: BACKLOG }, () => {
      listener.off('error', reject)
      resolve()
    })
  })
}
