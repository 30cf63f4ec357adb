import { BlockList, isIP } from 'node:net'

/** Reports whether an address is in a set of addresses. */
export type AddressSet = (address: string) => boolean

/**
 * Parses lines with addresses or CIDR ranges, IPv4 or IPv6. Undefined if any line is invalid, so that an
 * invalid list admits no address.
 */
export function parseAddresses(lines: readonly string[]): AddressSet | undefined {
  const list = new BlockList()
  for (const line of lines) {
    const [address = '', prefix, ...extra] = line.split('/')
    const version = isIP(address)
    if (version === 0 || extra.length > 0 || address.includes('%')) return undefined
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

/** Whether `text` is an address, or a CIDR range such as `10.0.0.0/8`. */
export function isAddressRange(text: string): boolean {
  return parseAddresses([text]) !== undefined
}

/** Whether an address or CIDR range lies within one of `ranges`, which are also addresses or CIDR ranges. */
export function isInRanges(text: string, ranges: readonly string[]): boolean {
  const [address = '', bits] = text.split('/')
  return ranges.some((range) => {
    const [start = '', maxBits] = range.split('/')
    if (isIP(address) !== isIP(start) || parseAddresses([range])?.(address) !== true) return false
    const widest = isIP(start) === 4 ? 32 : 128
    return Number(bits ?? widest) >= Number(maxBits ?? widest)
  })
}

let loopback: AddressSet | undefined

/** Whether an address is a loopback address. */
export function isLoopback(address: string): boolean {
  // Made on the first use: the expression for addresses of IPv6 takes 2 ms of each thread that loads this module.
  loopback ??= parseAddresses(['127.0.0.0/8', '::1'])
  return loopback?.(address) ?? false
}

/** The lines of a token's `allow_ips` without blank ones. `docs/api.md: Token`. */
export function allowListLines(allow_ips: string | null): string[] {
  return (allow_ips ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/**
 * Returns the set of addresses from which a token may be used: all if it has no list, none if its list is
 * invalid.
 */
export function allowedAddresses(allow_ips: string | null): AddressSet {
  const lines = allowListLines(allow_ips)
  if (lines.length === 0) return () => true
  return parseAddresses(lines) ?? (() => false)
}
