import type { QuotaWaitLimits } from '../accounts/ledger/call-queue.ts'
import type { Options } from '../domain/options.ts'
import type { IncomingCall } from './incoming-call.ts'

/**
 * How long a call waits for other calls to release quota (`waitMs`, in milliseconds); it stops waiting when
 * its client leaves.
 */
export function waitLimitsOf({ response }: IncomingCall, { hold_wait: waitMs }: Options): QuotaWaitLimits {
  response.needsUpstream()
  return {
    // An aborted response calls no listener.
    waitMs: response.isAborted ? 0 : waitMs,
    onLeft: (listener) => response.onClosed(listener),
  }
}
