import { type Socket, isIP } from 'node:net'
import type { Origin } from './origin.ts'
import type { Proxy } from './proxy.ts'

/** Maximum number of bytes of a proxy's answer to the handshake. */
const MAX_BYTES = 16_384

/**
 * Requests a tunnel from a proxy over a socket that is connecting. `onEnd` is called once, with a fixed
 * phrase as the reason if there is no tunnel. Afterwards the socket is not read any more.
 */
export function openTunnel(
  socket: Socket,
  origin: Origin,
  proxy: Proxy,
  onEnd: (failure: string | undefined) => void,
): void {
  const { send, next: first } = proxy.kind === 'http' ? httpConnect(origin, proxy) : socks5(origin, proxy)
  let next: Handshake = first
  let received: Buffer = Buffer.alloc(0)
  const end = (failure: string | undefined): void => {
    socket.off('data', onData).pause()
    onEnd(failure)
  }
  const onData = (chunk: Buffer): void => {
    received = Buffer.concat([received, chunk])
    for (;;) {
      const step = next(received)
      if (!step) {
        if (received.length > MAX_BYTES) end('the server is not a proxy')
        return
      }
      if ('failure' in step) return end(step.failure)
      received = received.subarray(step.used)
      // A server sends nothing before the client does, so further bytes cannot come from it.
      if ('opened' in step) return end(received.length > 0 ? 'the server is not a proxy' : undefined)
      next = step.next
      socket.write(step.send)
    }
  }
  socket.on('data', onData)
  socket.once('connect', () => {
    const { host, lookup, isHostChecked } = origin
    if (!isHostChecked || !lookup || isIP(host) !== 0) return socket.write(send)
    lookup(host, { all: true }, (error) => (error ? end(error.code ?? error.message) : socket.write(send)))
  })
}

/** Handshake of an HTTP proxy: `CONNECT` (RFC 9110, section 9.3.6). */
function httpConnect(origin: Origin, { credentials }: Proxy): { send: Buffer; next: Handshake } {
  const { host, port } = origin
  const authority = isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`
  const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`]
  if (credentials) {
    const encoded = Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64')
    lines.push(`Proxy-Authorization: Basic ${encoded}`)
  }
  return { send: Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), next: readHead }
}

const readHead: Handshake = (received) => {
  const end = received.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const status = /^HTTP\/1\.[01] (\d{3})\b/.exec(received.toString('latin1', 0, end))?.[1]
  if (status === undefined) return { failure: 'the server is not a proxy' }
  if (status === '407') return { failure: 'the proxy refused the credentials' }
  if (!status.startsWith('2')) return { failure: 'the proxy refused the connection' }
  return { opened: true, used: end + 4 }
}

const VERSION = 5
const NO_AUTHENTICATION = 0
const BY_PASSWORD = 2
const CONNECT = 1
const DOMAIN = 3
/** Number of bytes of an IPv4 and an IPv6 address, by the type number of SOCKS5. */
const ADDRESS_BYTES: Readonly<Record<number, number>> = { 1: 4, 4: 16 }
const NOT_A_PROXY = { failure: 'the server is not a proxy' } as const

/**
 * Handshake of a SOCKS5 proxy (RFC 1928), which resolves the host name; the password is sent as in RFC 1929.
 */
function socks5(origin: Origin, { credentials }: Proxy): { send: Buffer; next: Handshake } {
  const request = requestOf(origin)

  const readMethod: Handshake = (received) => {
    if (received.length < 2) return undefined
    if (received[0] !== VERSION) return NOT_A_PROXY
    if (received[1] === NO_AUTHENTICATION) return { send: request, used: 2, next: readReply }
    if (received[1] !== BY_PASSWORD || !credentials) return { failure: 'the proxy refused the credentials' }
    const { user, password } = credentials
    return {
      send: Buffer.concat([Buffer.of(1), withLengthPrefix(user), withLengthPrefix(password)]),
      used: 2,
      next: readVerdict,
    }
  }

  const readVerdict: Handshake = (received) => {
    if (received.length < 2) return undefined
    if (received[1] !== 0) return { failure: 'the proxy refused the credentials' }
    return { send: request, used: 2, next: readReply }
  }

  const methods = credentials ? [NO_AUTHENTICATION, BY_PASSWORD] : [NO_AUTHENTICATION]
  return { send: Buffer.of(VERSION, methods.length, ...methods), next: readMethod }
}

// An IPv6 address is sent in the form of a host name, which every proxy accepts.
function requestOf({ host, port }: Origin): Buffer {
  const address =
    isIP(host) === 4
      ? Buffer.of(1, ...host.split('.').map(Number))
      : Buffer.concat([Buffer.of(DOMAIN), withLengthPrefix(host)])
  return Buffer.concat([Buffer.of(VERSION, CONNECT, 0), address, Buffer.of(port >> 8, port & 255)])
}

const readReply: Handshake = (received) => {
  if (received.length < 5) return undefined
  if (received[0] !== VERSION) return NOT_A_PROXY
  if (received[1] !== 0) return { failure: 'the proxy refused the connection' }
  const type = received[3] as number
  const bytes = type === DOMAIN ? 1 + (received[4] as number) : ADDRESS_BYTES[type]
  if (bytes === undefined) return NOT_A_PROXY
  const used = 4 + bytes + 2
  return received.length < used ? undefined : { opened: true, used }
}

function withLengthPrefix(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([Buffer.of(bytes.length), bytes])
}

/** Next step of a handshake: bytes to send and how to continue, or the end. */
type HandshakeStep =
  | { readonly send: Buffer; readonly used: number; readonly next: Handshake }
  /** The tunnel is open; `used` is the number of bytes that belonged to the handshake. */
  | { readonly opened: true; readonly used: number }
  | { readonly failure: string }
  /** More bytes are needed. */
  | undefined

/**
 * A step of a handshake. It reads the bytes from the proxy that no earlier step has used, and returns what
 * comes next.
 */
type Handshake = (received: Buffer) => HandshakeStep
