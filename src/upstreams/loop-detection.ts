import { timingSafeEqual } from 'node:crypto'
import { GatewayError } from '../errors.ts'
import type { Request } from '../http/request.ts'

/** Header of every request to an upstream, with a mark by which the gateway recognises its own requests. */
export const LOOP_MARK_HEADER = 'x-gateway-via'

/**
 * Throws `GatewayError` if a request was sent by this gateway or by one with the same secret. Otherwise a
 * channel whose URL is that of this gateway would call itself endlessly.
 */
export function refuseLoop({ headers }: Request, mark: string): void {
  const given = headers[LOOP_MARK_HEADER]
  if (given === undefined || !sameText(given, mark)) return
  throw new GatewayError(
    'loop_detected',
    'this request was sent by the gateway itself: the base_url of one of its channels leads back to it',
  )
}

function sameText(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a, 'latin1'), Buffer.from(b, 'latin1'))
}
