import { isIP } from 'node:net'
import type { AddressSet } from '../../domain/ip-allow-list.ts'
import type { Request } from '../../http/request.ts'
import { peerAddress, withoutIpv6Mapping, trustedProxyAddresses } from './trusted-peer.ts'

/** Determines the address that a request comes from. */
export interface ClientAddress {
  (request: Request): string
  /** Whether this address belongs to a trusted proxy. */
  readonly trusts: (peer: string) => boolean
}

/**
 * Returns the client's address: that of the socket's peer, or, if the peer is a trusted proxy, the last
 * address in X-Forwarded-For that is not itself a trusted proxy. Text that is not an address ends the search.
 */
export function clientAddress(trustedProxies: readonly string[], onUntrusted: () => void): ClientAddress {
  const trusted = trustedProxyAddresses(trustedProxies)
  let warned = false
  const addressOf = (request: Request): string => {
    const peer = peerAddress(request)
    const forwarded = request.headers['x-forwarded-for']
    if (forwarded === undefined) return peer
    if (!trusted(peer)) {
      if (!warned) onUntrusted()
      warned = true
      return peer
    }
    return lastUntrusted(forwarded, peer, trusted)
  }
  return Object.assign(addressOf, { trusts: trusted })
}

function lastUntrusted(forwarded: string, peer: string, trusted: AddressSet): string {
  let address = peer
  for (const hop of forwarded.split(',').toReversed()) {
    const candidate = withoutIpv6Mapping(hop.trim())
    if (isIP(candidate) === 0) return address
    address = candidate
    if (!trusted(candidate)) return candidate
  }
  return address
}
