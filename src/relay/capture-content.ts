import type { Caller } from '../accounts/authentication/caller.ts'
import type { ContentCapture } from '../content/content-capture.ts'
import type { ContentLog } from '../content/content-log.ts'
import { contentPolicy, EXPORTED_LEVELS } from '../domain/content-log.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Call } from './call.ts'

/** Services that capturing needs. */
interface CaptureServices {
  readonly content: Pick<ContentLog, 'capture'>
  readonly telemetry: Telemetry | undefined
}

/** Begins to collect what is said in a call, if that is kept; undefined if it is not. */
export function captureContent(
  { content, telemetry }: CaptureServices,
  call: Call,
  { user, token }: Caller,
  body: Buffer,
): ContentCapture | undefined {
  const { plan, incoming, response } = call
  const { contentLog, groups } = plan.settings
  const policy = contentPolicy(contentLog, groups.get(plan.group.name)?.contentLog, user, token, Math.random)
  if (!policy) return undefined
  const captured = {
    ...policy,
    id: incoming.id,
    userId: user.id,
    tokenId: token.id,
    startedMs: incoming.startedMs,
  }
  const capture = content.capture(captured, body)
  call.content = capture
  if (telemetry?.takesContent && EXPORTED_LEVELS.has(policy.what)) exportContent(call, capture, telemetry)
  response.onPiece = (piece) => capture.answerSent(piece)
  response.onClosed(() => capture.closed())
  if (response.isAborted) capture.closed()
  return capture
}

/** Hands what is kept of a call to telemetry, as the client sent and got it. */
function exportContent(call: Call, capture: ContentCapture, telemetry: Telemetry): void {
  call.awaitsContent = true
  capture.onOver = (content) => {
    const { request_received: request, answer_received, answer_sent } = content ?? {}
    telemetry.content(call.incoming.id, request && { request, answer: answer_sent ?? answer_received })
  }
}
