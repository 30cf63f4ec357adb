import { isIP } from 'node:net'
import type { Handshake } from './handshake.ts'
import type { Origin } from './origin.ts'
import type { Proxy } from './proxy.ts'

/** Handshake of an HTTP proxy: `CONNECT` (RFC 9110, section 9.3.6). */
export function httpConnect(origin: Origin, { credentials }: Proxy): { send: Buffer; next: Handshake } {
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
