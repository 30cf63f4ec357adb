import type { Caller } from '../accounts/authentication/caller.ts'
import type { ContentCapture } from '../content/content-capture.ts'
import type { ContentLog } from '../content/content-log.ts'
import { type ContentPolicy, contentPolicy, EXPORTED_LEVELS } from '../domain/content-log.ts'
import type { CallContent, Telemetry } from '../telemetry/telemetry.ts'
import type { Call } from './call.ts'

/** What calls need of the content log. */
export type ContentLogForCalls = Pick<ContentLog, 'capture' | 'redact'>

/** Begins to collect what is said in a call; undefined if nothing of it is kept. */
export function captureOf(
  log: ContentLogForCalls,
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
  if (telemetry?.takesContent && EXPORTED_LEVELS.has(policy.what))
    exportContent(log, policy, call, content, telemetry)
  response.onPiece = (piece) => content.answerSent(piece)
  response.onClosed(() => content.closed())
  if (response.isAborted) content.closed()
  return content
}

/** Hands what is kept of a call to telemetry, as the client sent and got it. */
function exportContent(
  log: ContentLogForCalls,
  { what }: ContentPolicy,
  call: Call,
  capture: ContentCapture,
  telemetry: Telemetry,
): void {
  const { id } = call.incoming
  call.awaitsContent = true
  capture.onOver = (kept) => {
    call.awaitsContent = false
    const { request_received: request, answer_received, answer_sent } = kept ?? {}
    const content = request && { request, answer: answer_sent ?? answer_received }
    if (!content || !telemetry.hasRoomFor(content)) telemetry.content(id, undefined)
    else if (what === 'full') telemetry.content(id, content)
    else
      redacted(log, content).then(
        (said) => telemetry.content(id, said),
        () => telemetry.content(id, undefined),
      )
  }
}

async function redacted(log: ContentLogForCalls, { request, answer }: CallContent): Promise<CallContent> {
  return { request: await log.redact(request), answer: answer && (await log.redact(answer)) }
}
