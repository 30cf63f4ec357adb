import { type AddressSet, parseAddresses } from '../domain/ip-allow-list.ts'
import type { Request } from '../server/request.ts'

/** Which peers are proxies whose word counts: `options.trusted_proxies`, which are CIDRs. */
export function trustedAddresses(trustedProxies: readonly string[]): AddressSet {
  return parseAddresses(trustedProxies) ?? (() => false)
}

/** The address at the other end of the socket. */
export function peerAddress(request: Request): string {
  return plainAddress(request.remoteAddress)
}

/** A dual-stack socket names IPv4 peers as ::ffff:192.0.2.1. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

/** What a header of a request says, if a trusted proxy says it: its first word, in lower case. */
export function proxyHeader(
  request: Request,
  header: 'x-forwarded-proto' | 'x-forwarded-host',
  trustedProxies: readonly string[],
): string | undefined {
  const told = request.headers[header]
  if (told === undefined || !trustedAddresses(trustedProxies)(peerAddress(request))) return undefined
  return told.split(',')[0]?.trim().toLowerCase()
}
