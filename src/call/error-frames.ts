import type { StreamError } from '@sluice/wire/sse/stream-tap'
import type { ErrorContent } from '@sluice/wire/upstream-error'
import { type ErrorSentToClient, causeOfStatus } from '../domain/failure-cause.ts'
import { ERRORS } from '../errors.ts'
import { redactFrame } from '../upstreams/redact.ts'
import type { Call } from './call.ts'
import { type Failure, streamErrorText } from './failure.ts'
import { STORAGE_UNAVAILABLE } from './storage-errors.ts'
import type { Tap } from './dialects/answer-reader.ts'
import type { AttemptTarget } from './request-stages.ts'
import { withDisplayedAmounts } from './refusal-amounts.ts'

/** Error of a stream whose upstream broke off. */
export const UPSTREAM_INTERRUPTED = { type: 'api_error', code: 'upstream_error' }
/** Error message of a stream whose upstream broke off. */
export const INTERRUPTED_MESSAGE = 'the upstream broke off before the response was complete'
/** Ends an event of which only a part was sent, so that the error after it is a separate event. */
const BLANK_LINE = Buffer.from('\n\n')
const ENDED = /(?:\n|\r\n?)(?:\n|\r\n?)$/

/**
 * Frame with the upstream's error, redacted. If the client speaks the upstream's dialect, the rest of the
 * frame is unchanged.
 */
export function upstreamErrorFrame(target: AttemptTarget, tap: Tap, error: StreamError): Buffer {
  const { channel, features } = target
  const change = features?.changesErrors ? (text: string) => features.errorText(text) : undefined
  const own = tap.errorFrame && redactFrame(tap.errorFrame, channel, change)
  if (own) {
    const held = tap.check?.takeHeldEvents()
    if (held && held.length > 0) return Buffer.concat([held, afterHeld(own, target, tap, error)])
  }
  return afterHeld(own, target, tap, error)
}

function afterHeld(own: Buffer | undefined, target: AttemptTarget, tap: Tap, error: StreamError): Buffer {
  if (own && tap.endsWithError) return own
  const last = tap.failureFrame(streamErrorText(target, error.data))
  if (!own || own.length === 0) return last
  return Buffer.concat(
    ENDED.test(own.subarray(-4).toString('latin1')) ? [own, last] : [own, BLANK_LINE, last],
  )
}

/** Event that ends a stream whose cost exceeded the reserved quota, because quota or a budget is used up. */
export function quotaUsedUpFrame(call: Call, tap: Tap): Buffer {
  const { type, code, message } = quotaUsedUpError(call)
  return gatewayErrorFrame(call, tap, { type, code }, message)
}

/** The error of a stream whose cost exceeded the quota that was reserved for it. */
export function quotaUsedUpError(call: Call): ErrorSentToClient {
  const { refusal } = call.hold
  const code = refusal?.code ?? 'insufficient_quota'
  const shown = refusal && withDisplayedAmounts(refusal, call.plan.settings.options)
  const message = shown?.usedUp ?? 'the quota held for this response is used up'
  return { cause: 'spent', status: 200, type: ERRORS[code].type, code, message }
}

/** The error of a stream that ended before it was complete. */
export function interruptedStreamError(failure: Failure): ErrorSentToClient {
  const { failureCause, inStream = UPSTREAM_INTERRUPTED } = failure
  // Because the client has a part of the response, the cause of any failure other than a stop or the
  // gateway's own is `provider_broken`.
  const isOurs = failureCause === 'gateway' || failureCause === 'stopped'
  const cause = isOurs ? failureCause : 'provider_broken'
  return { cause, status: 200, ...inStream, message: failure.refusal?.message ?? INTERRUPTED_MESSAGE }
}

/** The error that an upstream reported in the middle of a stream. */
export function errorInStream({ type, code, message, status = 500 }: ErrorContent): ErrorSentToClient {
  return { cause: causeOfStatus(status), status: 200, type, code, message }
}

/** Event that ends a stream whose charge is written later, because the database refuses writes. */
export function storageErrorFrame(call: Call, tap: Tap): Buffer {
  const kind = { type: 'gateway_error', code: 'storage_unavailable' }
  call.incoming.record.failure = kind.code
  return gatewayErrorFrame(call, tap, kind, STORAGE_UNAVAILABLE)
}

/** Event that ends a stream because of an error of the gateway itself. */
export function gatewayErrorFrame(
  call: Call,
  tap: Tap,
  kind: { readonly type: string; readonly code: string },
  message: string,
): Buffer {
  const { id: requestId } = call.incoming
  const frame = tap.failureFrame({ ...kind, message: `${message} (request id: ${requestId})`, requestId })
  return tap.isMidEvent ? Buffer.concat([BLANK_LINE, frame]) : frame
}
