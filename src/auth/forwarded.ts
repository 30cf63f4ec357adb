import { isLoopback } from '../domain/ip-allow-list.ts'
import type { HeaderName } from '../server/header-names.ts'
import type { Request } from '../server/request.ts'

/** Headers that proxies add. */
const PROXY_HEADERS: readonly HeaderName[] = [
  'forwarded',
  'via',
  'x-forwarded-*',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]

/**
 * Whether a request shows that a proxy forwarded it or that it was meant for another host: by a header of a
 * proxy, or by a `Host` other than a loopback address or `ownHost`, which the gateway listens on. A proxy
 * that shows neither goes undetected.
 */
export function isForwarded(request: Request, ownHost: string): boolean {
  const { headers } = request
  return PROXY_HEADERS.some((name) => headers[name] !== undefined) || !isOwnHost(headers.host ?? '', ownHost)
}

function isOwnHost(host: string, ownHost: string): boolean {
  const name = host
    .replace(/:\d*$/, '')
    .replace(/^\[([^\]]*)\]$/, '$1')
    .toLowerCase()
  return name === 'localhost' || isLoopback(name) || name === ownHost.toLowerCase()
}
