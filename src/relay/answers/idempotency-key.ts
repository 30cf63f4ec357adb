import type { Settings } from '../../domain/settings.ts'
import type { IncomingCall } from '../request-stages.ts'

/**
 * The idempotency key of a call; undefined if it has none, or if the operator has turned them off. Throws the error
 * of a caller who may only get answers that were kept, if none are.
 */
export function idempotencyKeyOf(
  { request, unlessKept }: IncomingCall,
  { options }: Settings,
): string | undefined {
  if (options.idempotency.keep > 0) return request.headers['idempotency-key']
  if (unlessKept) throw unlessKept
  return undefined
}
