import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, buildConnector } from 'undici'
import { embeddedIpv4Addresses, hostOf, isMetadataAddress } from '../domain/metadata-address.ts'

/**
 * Thrown if a connection would go to an address that clients must not reach. The message may be shown to the
 * client.
 */
export class ForbiddenAddress extends Error {
  constructor(reason = 'its address is not public') {
    super(reason)
    this.name = 'ForbiddenAddress'
  }
}

/**
 * The range of IPv6 addresses on the public internet. Other ranges may contain IPv4 addresses
 * (`::127.0.0.1`).
 */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3')
/**
 * Ports on which public web servers listen. Services on other ports may not be meant for the public. The
 * empty text means the default port.
 */
const ALLOWED_PORTS: ReadonlySet<string> = new Set(['', '80', '443'])

/** Whether an address is on the public internet. Addresses in unknown ranges count as private. */
export function isPublicAddress(address: string): boolean {
  // A separate check is needed, because the address of Azure's metadata service is in a public range.
  if (!ipaddr.isValid(address) || isMetadataAddress(address)) return false
  if (!embeddedIpv4Addresses(address).every(isPublicAddress)) return false
  const parsed = ipaddr.process(address)
  if (parsed.range() !== 'unicast') return false
  return !(parsed instanceof ipaddr.IPv6) || parsed.match(GLOBAL_IPV6)
}

/**
 * Creates an HTTP agent for URLs that clients give. A host name is resolved once, all its addresses are
 * checked, and the connection uses a checked one; IP addresses in the URL and the port are checked too.
 * Because the check happens when connecting, neither redirects nor DNS rebinding can bypass it.
 */
export function createGuardedAgent(allowPrivateNetworks: boolean, timeoutMs: number): Agent {
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
      // IP addresses are checked before the connection is opened, because those in a URL are not passed to
      // `lookup`.
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
