import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectSecure } from 'node:tls'
import { openTunnel, type Origin } from '@sluice/http1'

/** Opens a connection to an origin, through its proxy if it has one. Rejects after `timeoutMs`. */
export async function dial(origin: Origin, timeoutMs: number): Promise<Socket> {
  const { host, lookup, proxy } = origin
  const { host: nextHost, port } = proxy ?? origin
  const socket = connectPlain({ host: nextHost, port, noDelay: true, ...(lookup && { lookup }) })
  const timer = setTimeout(() => socket.destroy(new Error('connect time-out')), timeoutMs)
  try {
    await ended(socket, (done) => {
      if (proxy) openTunnel(socket, origin, proxy, done)
      else socket.once('connect', () => done(undefined))
    })
    // A tunnel leaves it paused. Nothing is lost, because a server says nothing before it was asked.
    if (!origin.isSecure) return socket.resume()
    const secured = connectSecure({
      socket,
      ALPNProtocols: ['http/1.1'],
      ...(isIP(host) === 0 && { servername: host }),
    })
    await ended(secured, (done) => secured.once('secureConnect', () => done(undefined)))
    return secured
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Runs `begin` on a socket. Resolves when `begin` reports success; rejects if it reports a failure, or if the
 * socket ends.
 */
async function ended(
  socket: Socket,
  begin: (done: (failure: string | undefined) => void) => void,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onClose = (): void => reject(new Error('connection closed'))
  socket.once('error', reject).once('close', onClose)
  begin((failure) => (failure === undefined ? resolve() : reject(new Error(failure))))
  try {
    await promise
  } finally {
    socket.off('error', reject).off('close', onClose)
  }
}
