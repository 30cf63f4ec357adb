import type { Channel } from '../domain/records/channel.ts'
import type { ChannelMinutes } from '../upstreams/channel-minutes.ts'
import type { Call } from './call.ts'
import { CLIENT_GONE, type Failure, STOPPING, UNWRITTEN } from './failure.ts'
import type { AttemptEnd } from './response-handler.ts'

/** Whether an upstream failed, and not its client or the gateway. */
export function isOfUpstream(failure: Failure): boolean {
  const isOwn = failure === CLIENT_GONE || failure === STOPPING || failure.cause === UNWRITTEN
  return !isOwn && failure.isExpected !== true
}

/**
 * Notes an attempt for the channel's figures, as failed where the upstream failed before its response or in
 * the middle of it. An attempt over a connection that was dead already is repeated, and does not count.
 */
export function noteAttempt(
  minutes: ChannelMinutes,
  channel: Channel,
  tookMs: number,
  end: AttemptEnd | undefined,
  { cut, hold }: Call,
): void {
  if (end === undefined || end === 'settled') minutes.note(channel, tookMs, cut?.cause)
  else if (end.next !== 'same-again')
    minutes.note(channel, tookMs, isOfUpstream(end) && !hold.hasWriteFailed ? end.cause : undefined)
}
