import type { Response } from '@sluice/http1'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { ContentCapture } from '../../content/content-capture.ts'
import type { ContentLog } from '../../content/content-log.ts'
import { type ContentPolicy, contentPolicy, EXPORTED_LEVELS } from '../../domain/content-log.ts'
import type { Settings } from '../../domain/settings.ts'
import { timeOfId } from '../../store/usage-id.ts'
import type { CallContent, Telemetry } from '../../telemetry/telemetry.ts'
import type { Body, FormBody } from '../../call/body-reader.ts'
import type { TurnForm } from '../../call/incoming-call.ts'

/** The part of the content log that calls use. */
export type ContentLogForCalls = Pick<ContentLog, 'capture' | 'redact'>

/** A call whose content may be logged. */
export interface CallToCapture {
  readonly id: string
  readonly caller: Caller
  readonly settings: Settings
  readonly response: Response
  /** The body as the client sent it, before guards changed it. */
  readonly body: Body | FormBody
  /** Set for a turn of a WebSocket. */
  readonly turn: TurnForm | undefined
  /** Names of the groups that may serve the call. */
  readonly groups: readonly string[]
  /** Returns the group that served the call, once the call is over. */
  readonly servedBy: () => string
}

/** What receives the content of calls: the content log and, if it is on, telemetry. */
export interface ContentReceivers {
  readonly content: ContentLogForCalls
  readonly telemetry: Telemetry | undefined
}

/** Returns a function that begins to collect the content of a call; undefined if it is not logged. */
export function planContentCapture(
  receivers: ContentReceivers,
  call: CallToCapture,
): (() => ContentCapture) | undefined {
  const { caller, settings } = call
  const { contentLog, groups } = settings
  const { user, token } = caller
  let drawn: number | undefined
  // One random number for all groups, so that a call has a single chance to be in the sample that is logged.
  const random = (): number => (drawn ??= Math.random())
  const policyIn = (group: string): ContentPolicy | undefined =>
    contentPolicy(contentLog, groups.get(group)?.contentLog, user, token, random)
  const policies = call.groups.map(policyIn)
  if (policies.every((policy) => policy === undefined)) return undefined
  const isExported = policies.some((policy) => policy && EXPORTED_LEVELS.has(policy.what))
  return () => begunCapture(receivers, call, isExported, () => policyIn(call.servedBy()))
}

function begunCapture(
  receivers: ContentReceivers,
  { id, caller: { user, token }, response, body, turn }: CallToCapture,
  isExported: boolean,
  decide: () => ContentPolicy | undefined,
): ContentCapture {
  const capture = receivers.content.capture(
    // Content is looked up by the time in the call's id, which may be on another day than the call's start.
    { id, userId: user.id, tokenId: token.id, startedMs: timeOfId(id) },
    turn?.message ?? receivedBytes(body),
    decide,
    turn?.shown,
  )
  if (isExported) exportContent(receivers, id, capture)
  if (response.isAborted) capture.closed()
  else {
    response.observer = capture
    response.onClosed(() => capture.closed())
  }
  return capture
}

/** The bytes of a request's body; undefined if they are on disk. */
function receivedBytes({ bytes }: Body | FormBody): Buffer | undefined {
  return Buffer.isBuffer(bytes) ? bytes : undefined
}

/** Passes the logged content of a call to telemetry, as the client sent and received it. */
function exportContent(
  { content: log, telemetry }: ContentReceivers,
  id: string,
  capture: ContentCapture,
): void {
  if (!telemetry?.takesContent) return
  capture.onOver = (kept, policy) => {
    const { request_received: request, answer_received, answer_sent } = kept ?? {}
    const content = request && { request, answer: answer_sent ?? answer_received }
    const isExported = policy !== undefined && EXPORTED_LEVELS.has(policy.what)
    if (!isExported || !content || !telemetry.hasRoomFor(content)) telemetry.content(id, undefined)
    else if (policy.what === 'full') telemetry.content(id, content)
    else
      redacted(log, content).then(
        (said) => telemetry.content(id, said),
        () => telemetry.content(id, undefined),
      )
  }
}

/**
 * Resolves to the redacted content; undefined if the request cannot be redacted. Leaves out an answer that
 * cannot be redacted. Rejects if this would take too much memory or time.
 */
async function redacted(
  log: ContentLogForCalls,
  { request, answer }: CallContent,
): Promise<CallContent | undefined> {
  const asked = await log.redact(request)
  return asked && { request: asked, answer: answer && (await log.redact(answer)) }
}
