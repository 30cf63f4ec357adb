import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, buildConnector } from 'undici'
import { isMetadataAddress } from '../domain/metadata-address.ts'

/** An address that nobody outside may make us call; the message says why, and may be told. */
export class ForbiddenAddress extends Error {
  constructor(reason = 'its address is not public') {
    super(reason)
    this.name = 'ForbiddenAddress'
  }
}

/**
 * Of IPv6, nothing else has been given out; what lies outside may lead to IPv4 (`::127.0.0.1`), or will mean
 * something one day.
 */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3')
/** Where pictures are served. What listens elsewhere was not made for everybody to speak to. */
const ALLOWED_PORTS: ReadonlySet<string> = new Set(['', '80', '443'])

/**
 * Whether an address is somewhere on the public internet: everything else is private until shown otherwise.
 */
export function isPublicAddress(address: string): boolean {
  // Azure's metadata service has an address of the public internet.
  if (!ipaddr.isValid(address) || isMetadataAddress(address)) return false
  const parsed = ipaddr.process(address)
  if (parsed.range() !== 'unicast') return false
  return !(parsed instanceof ipaddr.IPv6) || parsed.match(GLOBAL_IPV6)
}

/**
 * Connections for addresses that callers name. A name is resolved once, every address that it has is checked,
 * and the connection goes to one that was; literals are checked as well, and so is the port. It sits on the
 * socket, so that neither a redirect nor a name that changes its mind gets around it.
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
      const host = options.hostname.replace(/^\[|\]$/g, '')
      // A literal is never looked up.
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
