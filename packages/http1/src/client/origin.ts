import type { LookupFunction } from 'node:net'
import type { Proxy } from './proxy.ts'

/** Address of one destination's connections, with its TLS session. */
export interface Origin {
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
  /** Function that resolves the host name; undefined to use the operating system. */
  readonly lookup: LookupFunction | undefined
  /**
   * Proxy that connections go through. Then only the proxy's host name is resolved here; the proxy itself
   * resolves the host name of the origin.
   */
  readonly proxy: Proxy | undefined
  /** Whether `lookup` must resolve the host name too before the proxy learns it; it may refuse the name. */
  readonly isHostChecked?: boolean
  /** Session of the latest TLS connection, which the next connection resumes. */
  session: Buffer | undefined
}

/** Origin of an `http:` or `https:` URL. */
export function originOf(url: URL, lookup?: LookupFunction, proxy?: Proxy): Origin {
  const { protocol, hostname, port } = url
  const isSecure = protocol === 'https:'
  return {
    // The brackets of an IPv6 address are not part of the host name.
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (isSecure ? 443 : 80) : Number(port),
    isSecure,
    lookup,
    proxy,
    session: undefined,
  }
}
