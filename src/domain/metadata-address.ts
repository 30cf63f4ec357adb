import { isIP } from 'node:net'
import { parseAddresses } from './ip-allow-list.ts'

/**
 * Addresses of clouds' metadata services, which give a machine's credentials to any program on it. Most are
 * in the link-local range 169.254.0.0/16; the others belong to Azure, Alibaba, Oracle, AWS and Google.
 */
const IPV4 = ['169.254.0.0/16', '168.63.129.16/32', '100.100.100.200/32', '192.0.0.192/32']
const IPV6 = ['fd00:ec2::/32', 'fd00:c1::a9fe:a9fe', 'fd20:ce::254', 'fe80::a9fe:a9fe']

const isListed = parseAddresses([...IPV4, ...IPV6])

/** Whether an address, in any IPv6 notation or embedding, belongs to a cloud's metadata service. */
export function isMetadataAddress(given: string): boolean {
  const address = given.replace(/%.*$/s, '')
  if (!isListed) return true
  return isListed(address) || embeddedIpv4Addresses(address).some(isListed)
}

/** Forms of IPv6 addresses that embed an IPv4 address: who has the form, and the bytes of the IPv4 address. */
const EMBEDDINGS: readonly {
  readonly prefix: readonly number[]
  readonly from?: number
  readonly at: readonly number[]
  readonly isInverted?: true
}[] = [
  // Compatible, mapped and translated addresses (RFC 4291, RFC 2765).
  { prefix: [0, 0, 0, 0, 0, 0], at: [12, 13, 14, 15] },
  { prefix: [0, 0, 0, 0, 0, 0xffff], at: [12, 13, 14, 15] },
  { prefix: [0, 0, 0, 0, 0xffff, 0], at: [12, 13, 14, 15] },
  // NAT64 (RFC 6052), and its local prefix with each length that fits (RFC 8215).
  { prefix: [0x64, 0xff9b, 0, 0, 0, 0], at: [12, 13, 14, 15] },
  { prefix: [0x64, 0xff9b, 1], at: [12, 13, 14, 15] },
  { prefix: [0x64, 0xff9b, 1], at: [6, 7, 9, 10] },
  { prefix: [0x64, 0xff9b, 1], at: [7, 9, 10, 11] },
  { prefix: [0x64, 0xff9b, 1], at: [9, 10, 11, 12] },
  // 6to4 (RFC 3056), and Teredo (RFC 4380) with the addresses of its server and, inverted, of its client.
  { prefix: [0x2002], at: [2, 3, 4, 5] },
  { prefix: [0x2001, 0], at: [4, 5, 6, 7] },
  { prefix: [0x2001, 0], at: [12, 13, 14, 15], isInverted: true },
  // ISATAP (RFC 5214) in any network, and 6over4 (RFC 2529).
  { prefix: [0, 0x5efe], from: 4, at: [12, 13, 14, 15] },
  { prefix: [0x200, 0x5efe], from: 4, at: [12, 13, 14, 15] },
  { prefix: [0xfe80, 0, 0, 0, 0, 0], at: [12, 13, 14, 15] },
]

/** The IPv4 addresses that an IPv6 address may embed; none of another text. */
export function embeddedIpv4Addresses(address: string): readonly string[] {
  const words = isIP(address) === 6 ? wordsOf(address) : []
  if (words.length !== 8) return []
  const bytes = words.flatMap((word) => [word >>> 8, word & 0xff])
  return EMBEDDINGS.filter(({ prefix, from = 0 }) =>
    prefix.every((word, index) => words[from + index] === word),
  ).map(({ at, isInverted }) => at.map((index) => (bytes[index] ?? 0) ^ (isInverted ? 0xff : 0)).join('.'))
}

/** The eight 16-bit words of a valid IPv6 address. */
function wordsOf(address: string): number[] {
  const dotted = /(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(address)
  const [a = 0, b = 0, c = 0, d = 0] = (dotted ?? []).slice(1).map(Number)
  const hexadecimal = dotted
    ? `${address.slice(0, dotted.index)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
    : address
  const [before = '', after] = hexadecimal.split('::')
  const read = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((word) => Number.parseInt(word, 16))
  const [start, end] = [read(before), read(after ?? '')]
  return after === undefined ? start : [...start, ...Array(8 - start.length - end.length).fill(0), ...end]
}

/** Whether the host of a URL, which may be a proxy's, is a metadata address in any notation. */
export function pointsToMetadataAddress(url: string): boolean {
  const parsed = parseWebUrl(url)
  const host = parsed ? hostOf(parsed) : ''
  return isIP(host) !== 0 && isMetadataAddress(host)
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
