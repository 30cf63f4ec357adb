import type { Caller } from '../accounts/authentication/caller.ts'
import type { ContentCapture } from '../content/content-capture.ts'
import type { ContentLog } from '../content/content-log.ts'
import { contentPolicy, EXPORTED_LEVELS } from '../domain/content-log.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Call } from './call.ts'

/** Begins to collect what is said in a call; undefined if nothing of it is kept. */
export function captureOf(
  log: Pick<ContentLog, 'capture'>,
  call: Call,
  { user, token }: Caller,
  body: Buffer,
): ContentCapture | undefined {
  const { plan, incoming, response } = call
  const { contentLog, groups } = plan.settings
  const ofGroup = groups.get(plan.group.name)?.contentLog
  const policy = contentPolicy(contentLog, ofGroup, user, token, Math.random)
  if (!policy) return undefined
  const { id, startedMs } = incoming
  const content = log.capture({ ...policy, id, userId: user.id, tokenId: token.id, startedMs }, body)
  call.content = content
  const { telemetry } = call.services
  if (telemetry?.takesContent && EXPORTED_LEVELS.has(policy.what)) exportContent(call, content, telemetry)
  response.onPiece = (piece) => content.answerSent(piece)
  response.onClosed(() => content.closed())
  if (response.isAborted) content.closed()
  return content
}

/** Hands what is kept of a call to telemetry, as the client sent and got it. */
function exportContent(call: Call, capture: ContentCapture, telemetry: Telemetry): void {
  call.awaitsContent = true
  capture.onOver = (content) => {
    const { request_received: request, answer_received, answer_sent } = content ?? {}
    telemetry.content(call.incoming.id, request && { request, answer: answer_sent ?? answer_received })
  }
}
