import ipaddr from 'ipaddr.js'

/** Bits of an IPv6 address that one host, or one household, is given whole. */
const OWN_BITS = 64

/**
 * Whom a limit by address is for: an IPv4 address as it is; of an IPv6 address the network that its host
 * chooses addresses from as it likes, so that another one of them is no fresh start.
 */
export function addressBlock(address: string): string {
  if (!address.includes(':')) return address
  const parsed = ipaddr.IPv6.isValid(address) ? ipaddr.IPv6.parse(address) : undefined
  if (!parsed) return address
  const network = parsed.parts.slice(0, OWN_BITS / 16).map((part) => part.toString(16))
  return `${network.join(':')}::/${OWN_BITS}`
}
