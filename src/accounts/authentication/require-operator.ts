import { createHash, timingSafeEqual } from 'node:crypto'
import { isLoopback } from '../../domain/ip-allow-list.ts'
import { GatewayError } from '../../errors.ts'
import { PROXY_HEADERS, type Request } from '../../http/request.ts'
import { bearerKey } from './key-from-request.ts'

/**
 * Admits the operator and throws for everyone else. If `token` is set, the request must have it as bearer;
 * otherwise it must come from this machine, by the socket's address, and must not have passed a proxy.
 * `ownHost` is the address that the gateway listens on.
 */
export function requireOperator(request: Request, token: string, ownHost: string): void {
  if (token !== '') {
    if (!sameText(bearerKey(request.headers.authorization) ?? '', token)) throw notOperator('')
  } else if (!isLoopback(request.remoteAddress)) throw notOperator('')
  else if (isForwarded(request, ownHost))
    throw notOperator('; through a proxy it needs options.metrics_token')
}

function notOperator(hint: string): GatewayError {
  return new GatewayError('not_operator', `this is for the operator of the gateway${hint}`)
}

// Compares hashes, so that timing reveals neither length nor content.
function sameText(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}

/**
 * Whether a request was forwarded by a proxy or was meant for another host: it has a header of a proxy, or a
 * `Host` other than a loopback address or `ownHost`, the address that the gateway listens on. A proxy that
 * leaves neither sign goes undetected.
 */
function isForwarded(request: Request, ownHost: string): boolean {
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
