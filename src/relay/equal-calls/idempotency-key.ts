import type { Settings } from '../../domain/settings.ts'
import type { IncomingCall } from '../request-stages.ts'

/**
 * The idempotency key of a call; undefined if it has none or the operator has turned idempotency keys off. If
 * they are turned off, throws the error `unlessKept` for a caller who may get only kept answers.
 */
export function idempotencyKeyOf(
  { request, unlessKept }: IncomingCall,
  { options }: Settings,
): string | undefined {
  if (options.idempotency.keep > 0) return request.headers['idempotency-key']
  if (unlessKept) throw unlessKept
  return undefined
}
