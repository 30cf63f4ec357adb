import ipaddr from 'ipaddr.js'

/** Bits of an IPv6 network that one host or household usually has to itself. */
const NETWORK_BITS = 64

/**
 * Subject of limits by address: an IPv4 address, or the /64 of an IPv6 address, within which a host can pick
 * addresses at will.
 */
export function addressBlock(address: string): string {
  if (!address.includes(':')) return address
  const parsed = ipaddr.IPv6.isValid(address) ? ipaddr.IPv6.parse(address) : undefined
  if (!parsed) return address
  const network = parsed.parts.slice(0, NETWORK_BITS / 16).map((part) => part.toString(16))
  return `${network.join(':')}::/${NETWORK_BITS}`
}
