import ipaddr from 'ipaddr.js'

/** Prefix length of the IPv6 network that one host or household usually has. */
const NETWORK_BITS = 64

/**
 * Returns the key by which limits count an address: an IPv4 address as it is, an IPv6 address as its /64
 * network, because a host can use any address of that network.
 */
export function addressBlock(address: string): string {
  if (!address.includes(':')) return address
  const parsed = ipaddr.IPv6.isValid(address) ? ipaddr.IPv6.parse(address) : undefined
  if (!parsed) return address
  const network = parsed.parts.slice(0, NETWORK_BITS / 16).map((part) => part.toString(16))
  return `${network.join(':')}::/${NETWORK_BITS}`
}
