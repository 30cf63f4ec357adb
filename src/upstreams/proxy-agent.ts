import { connect as connectPlain, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectSecure } from 'node:tls'
import { openTunnel, type Origin, originOf, type Proxy } from '@sluice/http1'
import { Agent, type buildConnector } from 'undici'
import { parseProxy } from './parse-proxy.ts'

/** An HTTP agent whose connections go through a proxy. Disposing of it closes all of them. */
interface ProxiedAgent extends Agent, AsyncDisposable {}

/**
 * Creates an HTTP agent whose connections go through the proxy with this URL. `lookup` resolves the host name
 * of the proxy, and with `isHostChecked` also that of the address.
 */
export function proxiedAgent(
  proxyUrl: string,
  lookup: LookupFunction | undefined,
  timeoutMs: number,
  isHostChecked: boolean,
): ProxiedAgent {
  const proxy = parseProxy(proxyUrl)
  if (!proxy) throw new Error('the proxy of the channel cannot be read')
  const agent = new Agent({
    allowH2: false,
    maxHeaderSize: 16_384,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect({ protocol, host }, callback) {
      const origin = { ...originOf(new URL(`${protocol}//${host}`), lookup, proxy), isHostChecked }
      void report(openedThrough(proxy, origin, timeoutMs), callback)
    },
  })
  return Object.assign(agent, { [Symbol.asyncDispose]: () => agent.destroy() })
}

async function report(opening: Promise<Socket>, callback: buildConnector.Callback): Promise<void> {
  let socket: Socket
  try {
    socket = await opening
  } catch (error) {
    callback(error as Error, null)
    return
  }
  callback(null, socket)
}

async function openedThrough(proxy: Proxy, origin: Origin, timeoutMs: number): Promise<Socket> {
  const { host, lookup } = origin
  const socket = connectPlain({ host: proxy.host, port: proxy.port, ...(lookup && { lookup }) })
  const timer = setTimeout(() => socket.destroy(new Error('connect time-out')), timeoutMs)
  try {
    await ended(socket, (done) => openTunnel(socket, origin, proxy, done))
    if (!origin.isSecure) return socket
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
