import { BlockList, isIP } from 'node:net'

/** Tells whether an address is on the list. */
export type AddressSet = (address: string) => boolean

/**
 * Reads addresses and CIDRs, IPv4 or IPv6. Undefined if any line is neither: a list that cannot be read whole
 * lets nobody in, rather than everybody.
 */
export function parseAddresses(lines: readonly string[]): AddressSet | undefined {
  const list = new BlockList()
  for (const line of lines) {
    const [address = '', prefix, ...rest] = line.split('/')
    const version = isIP(address)
    if (version === 0 || rest.length > 0 || address.includes('%')) return undefined
    const family = version === 4 ? 'ipv4' : 'ipv6'
    if (prefix === undefined) list.addAddress(address, family)
    else {
      const bits = Number(prefix)
      if (!/^(?:0|[1-9]\d{0,2})$/.test(prefix) || bits > (version === 4 ? 32 : 128)) return undefined
      list.addSubnet(address, bits, family)
    }
  }
  return (address) => {
    const version = isIP(address)
    return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6')
  }
}

/** Whether `text` is an address, or a CIDR such as `10.0.0.0/8`. */
export function isAddressRange(text: string): boolean {
  return parseAddresses([text]) !== undefined
}

const LOOPBACK = parseAddresses(['127.0.0.0/8', '::1'])

/** Whether an address is this machine's own. */
export function isLoopback(address: string): boolean {
  return LOOPBACK?.(address) ?? false
}

/** The entries of a token's `allow_ips`: one a line, blank lines apart. `docs/api.md: Token`. */
export function allowListLines(allowIps: string | null): string[] {
  return (allowIps ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/**
 * The addresses that a token with this `allow_ips` may be used from. No list = all of them; a bad one = none.
 */
export function allowedAddresses(allowIps: string | null): AddressSet {
  const lines = allowListLines(allowIps)
  if (lines.length === 0) return () => true
  return parseAddresses(lines) ?? (() => false)
}
