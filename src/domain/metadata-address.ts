import { isIP } from 'node:net'
import { parseAddresses } from './ip-allow-list.ts'

/**
 * Addresses of clouds' metadata services, which give a machine's credentials to any program on it. Most are
 * in the link-local range 169.254.0.0/16; the others belong to Azure, Alibaba, Oracle, AWS and Google.
 */
const IPV4 = ['169.254.0.0/16', '168.63.129.16/32', '100.100.100.200/32', '192.0.0.192/32']
const IPV6 = ['fd00:ec2::/32', 'fd00:c1::a9fe:a9fe', 'fd20:ce::254', 'fe80::a9fe:a9fe']

/**
 * Prefixes of IPv6 addresses that embed an IPv4 address: mapped, translated, compatible, and two of NAT64.
 */
const IPV4_PREFIXES = ['::ffff:', '::ffff:0:', '::', '64:ff9b::', '64:ff9b:1::']

const isListed = parseAddresses([...IPV4, ...IPV6, ...IPV4.flatMap(ipv6RangesOf)])

/** Whether an address, in any IPv6 notation, belongs to a cloud's metadata service. */
export function isMetadataAddress(address: string): boolean {
  return isListed?.(address.replace(/%.*$/s, '')) ?? true
}

/** Whether the host of a URL, which may be a proxy's, is a metadata address in any notation. */
export function pointsToMetadataAddress(url: string): boolean {
  const parsed = parseWebUrl(url)
  const host = parsed ? hostOf(parsed) : ''
  return isIP(host) !== 0 && isMetadataAddress(host)
}

function ipv6RangesOf(range: string): string[] {
  const [address = '', bits = '32'] = range.split('/')
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  const sixToFour = `2002:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}::/${16 + Number(bits)}`
  return [...IPV4_PREFIXES.map((start) => `${start}${address}/${96 + Number(bits)}`), sixToFour]
}

/**
 * Parses a URL of any scheme as a browser parses a web URL, so that its host has one notation; `URL` leaves
 * the hosts of unknown schemes (`socks5`) unchanged. Null if the text is not a URL.
 */
export function parseWebUrl(text: string): URL | null {
  return URL.parse(text.replace(/^[^:/?#]*:/, 'http:'))
}

/**
 * Host of a web URL, without the brackets of an IPv6 address. Decimal, octal, hexadecimal and percent-encoded
 * addresses, full-width digits and ideographic dots are normalized.
 */
export function hostOf({ hostname }: Pick<URL, 'hostname'>): string {
  return hostname.replace(/^\[|\]$/g, '')
}
