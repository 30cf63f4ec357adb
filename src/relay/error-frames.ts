import type { StreamError } from '../protocols/sse/stream-tap.ts'
import { redactFrame } from '../upstreams/redact-frame.ts'
import type { Call, Target } from './call.ts'
import { streamErrorText } from './failure.ts'
import type { Tap } from './dialects/dialect.ts'

/** The upstream broke off. */
export const UPSTREAM_CUT = { type: 'api_error', code: 'upstream_error' }
/** The stream cost more than could be held for it. */
export const HOLD_USED_UP = { type: 'permission_error', code: 'insufficient_quota' }
/** Ends an event of which a part was sent, so that the next one is an event of its own. */
const BLANK_LINE = Buffer.from('\n\n')

/**
 * The upstream's error: as it came, but for our keys and its address, where the caller speaks its protocol.
 */
export function upstreamErrorFrame(
  { dialect }: Call,
  { channel }: Target,
  { errorFrame }: Tap,
  error: StreamError,
): Buffer {
  if (errorFrame) return redactFrame(errorFrame, channel)
  return dialect.errorFrame({ ...UPSTREAM_CUT, ...streamErrorText(channel, error.data) })
}

/** The gateway's own reason why a stream ends here, as an event of its own. */
export function gatewayErrorFrame(
  call: Call,
  tap: Tap,
  kind: { readonly type: string; readonly code: string },
  message: string,
): Buffer {
  const frame = call.dialect.errorFrame({ ...kind, message: `${message} (request id: ${call.id})` })
  return tap.isMidEvent ? Buffer.concat([BLANK_LINE, frame]) : frame
}
