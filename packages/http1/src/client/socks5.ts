import { isIP } from 'node:net'
import type { Handshake } from './handshake.ts'
import type { Origin } from './origin.ts'
import type { Proxy } from './proxy.ts'

const VERSION = 5
const NO_AUTHENTICATION = 0
const BY_PASSWORD = 2
const CONNECT = 1
const DOMAIN = 3
/** Bytes of an address by its type, a domain's without its length. */
const ADDRESS_BYTES: Readonly<Record<number, number>> = { 1: 4, 4: 16 }
const NOT_A_PROXY = { failure: 'the server is not a proxy' } as const

/** Handshake of a SOCKS5 proxy (RFC 1928), which resolves the host; with credentials, RFC 1929. */
export function socks5(origin: Origin, { credentials }: Proxy): { send: Buffer; next: Handshake } {
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

// IPv6 addresses are sent as host names are, which every proxy accepts.
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
