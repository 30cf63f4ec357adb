import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, buildConnector } from 'undici'
import { hostOf, isMetadataAddress } from '../domain/metadata-address.ts'

/** Refusal to connect to an address that clients must not reach. The message may be shown to the client. */
export class ForbiddenAddress extends Error {
  constructor(reason = 'its address is not public') {
    super(reason)
    this.name = 'ForbiddenAddress'
  }
}

/** The only allocated range of global unicast addresses in IPv6; others may map to IPv4 (`::127.0.0.1`). */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3')
/** Ports of public web servers; services at other ports may not be public. */
const ALLOWED_PORTS: ReadonlySet<string> = new Set(['', '80', '443'])

/** Reports whether an address is on the public internet. Unknown ranges count as private. */
export function isPublicAddress(address: string): boolean {
  // Azure's metadata service has a public address.
  if (!ipaddr.isValid(address) || isMetadataAddress(address)) return false
  const parsed = ipaddr.process(address)
  if (parsed.range() !== 'unicast') return false
  return !(parsed instanceof ipaddr.IPv6) || parsed.match(GLOBAL_IPV6)
}

/**
 * Creates an agent for URLs from clients. A host name is resolved once, all its addresses are checked, and
 * the connection uses a checked one; literal addresses and the port are checked too. The check is part of
 * connecting, so that neither redirects nor DNS rebinding can bypass it.
 */
export function guardedAgent(allowPrivateNetworks: boolean, timeoutMs: number): Agent {
  const connect = buildConnector({
    timeout: timeoutMs,
    ...(allowPrivateNetworks ? {} : { lookup: publicLookup }),
  })
  return new Agent({
    allowH2: false,
    maxHeaderSize: 16_384,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect(options, callback) {
      const host = hostOf(options)
      // Literal addresses are not passed to `lookup`.
      if (!allowPrivateNetworks && ipaddr.isValid(host) && !isPublicAddress(host)) {
        callback(new ForbiddenAddress(), null)
      } else if (!allowPrivateNetworks && !ALLOWED_PORTS.has(options.port)) {
        callback(new ForbiddenAddress('a URL at port 80 or 443 is expected'), null)
      } else connect(options, callback)
    },
  })
}

const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    const forbidden = !error && !addresses.every(({ address }) => isPublicAddress(address))
    const [first] = addresses ?? []
    if (error || forbidden || !first) callback(error ?? new ForbiddenAddress(), '', 0)
    else if (options.all) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}
