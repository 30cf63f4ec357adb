import { isLoopback } from '../domain/ip-allow-list.ts'
import type { HeaderName } from '../server/header-names.ts'
import type { Request } from '../server/request.ts'

/** Headers that proxies add to what they pass on. */
const ADDED: readonly HeaderName[] = [
  'forwarded',
  'via',
  'x-forwarded-*',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]

/**
 * Whether a request shows that a proxy passed it on, or that it was meant for another host: by a header that
 * proxies add, or by a `Host` that is neither this machine's loopback nor `ownHost`, which the gateway
 * listens on. A proxy that shows neither is not seen.
 */
export function isForwarded(request: Request, ownHost: string): boolean {
  const { headers } = request
  return ADDED.some((name) => headers[name] !== undefined) || !isOwnHost(headers.host ?? '', ownHost)
}

function isOwnHost(host: string, ownHost: string): boolean {
  const name = host
    .replace(/:\d*$/, '')
    .replace(/^\[([^\]]*)\]$/, '$1')
    .toLowerCase()
  return name === 'localhost' || isLoopback(name) || name === ownHost.toLowerCase()
}
