import { createHash, timingSafeEqual } from 'node:crypto'
import { isLoopback } from '../domain/ip-allow-list.ts'
import { GatewayError } from '../errors.ts'
import type { Request } from '../server/request.ts'
import { bearerKey } from './bearer.ts'

/**
 * Lets in whoever may see the gateway's inside: where `token` is set its bearers, else peers on this machine, by the
 * socket's address and never by a forwarded one.
 */
export function requireOperator(request: Request, token: string): void {
  const allowed =
    token === ''
      ? isLoopback(request.remoteAddress)
      : sameText(bearerKey(request.headers.authorization) ?? '', token)
  if (!allowed) throw new GatewayError('not_operator', 'this is for the operator of the gateway')
}

// Hashed first, so that neither length nor content show in the time it takes.
function sameText(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
