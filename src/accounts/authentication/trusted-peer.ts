import { type AddressSet, parseAddresses } from '../../domain/ip-allow-list.ts'
import type { Options } from '../../domain/options.ts'
import { GatewayError } from '../../errors.ts'
import type { Request } from '../../http/request.ts'

/** The trusted proxies: `options.trusted_proxies`, which are CIDRs. */
export function trustedProxyAddresses(trustedProxies: readonly string[]): AddressSet {
  return parseAddresses(trustedProxies) ?? (() => false)
}

/** Address of the socket's peer. */
export function peerAddress(request: Request): string {
  return withoutIpv6Mapping(request.remoteAddress)
}

/** IPv4 form of an address that a dual-stack socket reports as `::ffff:192.0.2.1`. */
export function withoutIpv6Mapping(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

/**
 * First value of a header that a trusted proxy set, in lower case; undefined if the peer is not a trusted
 * proxy or the header is missing.
 */
export function proxyHeader(
  request: Request,
  header: 'x-forwarded-proto' | 'x-forwarded-host',
  trustedProxies: readonly string[],
): string | undefined {
  const value = request.headers[header]
  if (value === undefined || !trustedProxyAddresses(trustedProxies)(peerAddress(request))) return undefined
  return value.split(',')[0]?.trim().toLowerCase()
}

/** Whether the client uses TLS, as stated by a trusted proxy: the gateway itself serves plain HTTP. */
export function isSecureRequest(request: Request, trustedProxies: readonly string[]): boolean {
  return proxyHeader(request, 'x-forwarded-proto', trustedProxies) === 'https'
}

/** The origin under which the client reaches the gateway: `options.public_url`, or that of the request. */
export function publicOrigin(
  request: Request,
  { public_url: publicUrl, trusted_proxies: trustedProxies }: Pick<Options, 'public_url' | 'trusted_proxies'>,
): string {
  if (publicUrl !== '') return publicUrl
  const scheme = isSecureRequest(request, trustedProxies) ? 'https' : 'http'
  const host = proxyHeader(request, 'x-forwarded-host', trustedProxies) ?? request.headers.host ?? ''
  const url = URL.parse(`${scheme}://${host}`)
  if (!url || url.pathname !== '/' || url.username !== '' || url.search !== '')
    throw new GatewayError('invalid_request', 'Host: expected the name that the gateway is reached by')
  return url.origin
}
