import { createHash, timingSafeEqual } from 'node:crypto'
import { isLoopback } from '../domain/ip-allow-list.ts'
import { GatewayError } from '../errors.ts'
import type { Request } from '../server/request.ts'
import { bearerKey } from './bearer.ts'
import { isForwarded } from './forwarded.ts'

/**
 * Admits the operator: the bearer of `token` if one is set, else peers on this machine, by the socket's
 * address, unless a proxy forwarded the request. `ownHost` is what the gateway listens on.
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
