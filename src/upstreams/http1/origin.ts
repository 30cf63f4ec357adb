import type { LookupFunction } from 'node:net'

/** Where the connections of one destination go. */
export interface Origin {
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
  /** Finds the addresses of the host; undefined = the system does. */
  readonly lookup: LookupFunction | undefined
  /** Of the latest TLS connection: the next one begins where it ended. */
  session: Buffer | undefined
}

/** The origin of an `http:` or `https:` URL. */
export function originOf({ protocol, hostname, port }: URL, lookup?: LookupFunction): Origin {
  const isSecure = protocol === 'https:'
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (isSecure ? 443 : 80) : Number(port),
    isSecure,
    lookup,
    session: undefined,
  }
}
