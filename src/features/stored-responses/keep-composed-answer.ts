import { inputItems } from '@sluice/wire/responses'
import { randomBytes } from 'node:crypto'
import type { ScannedRequest } from '../../call/answer-request.ts'
import type { RunningCall } from '../../call/running-call.ts'
import type { AttemptTarget } from '../../call/request-stages.ts'
import type { ResponseStore } from './response-store.ts'

/** An answer that the gateway has made of those of several calls. */
export interface ComposedAnswer {
  readonly id: string
  /** The answer as the client gets it, as JSON text. */
  readonly response: string
  /** The last of the calls, and what it was sent to. */
  readonly call: RunningCall
  readonly target: AttemptTarget
  /** Tokens of the conversation with the answer. */
  readonly tokens: number
}

/**
 * Prepares to keep such an answer. Resolves to undefined if the client or the operator does not want it to be kept, or if it
 * continues a response that its provider stores, because the gateway does not have the whole conversation then.
 */
export async function keepComposedAnswer(
  { scan, caller: { user }, settings: { options } }: ScannedRequest,
  responses: ResponseStore,
): Promise<((answer: ComposedAnswer) => Promise<void>) | undefined> {
  const { keep_responses: retentionMs } = options
  if (retentionMs === 0 || scan.kind('store') === 'false') return undefined
  const previous = scan.has('previous_response_id') ? scan.value('previous_response_id') : undefined
  const previousId = typeof previous === 'string' ? previous : null
  if (previousId !== null && (await responses.facts(user.id, previousId))?.contentBytes === 0)
    return undefined
  return ({ id, response, call, target, tokens }) =>
    responses.keep(() => {
      const createdMs = Date.now()
      const kept = {
        id,
        userId: user.id,
        model: call.plan.request.model,
        group: call.plan.group.name,
        channel: target.channel.name,
        keyTag: responses.keyTag(target.key.value),
        upstreamId: '',
        tokens,
        previousId,
        createdMs,
        expiresMs: createdMs + retentionMs,
        callId: null,
        rate: null,
      }
      const input = inputItems(scan, (prefix) => `${prefix}_${randomBytes(16).toString('hex')}`)
      return { response: kept, content: { input, response } }
    })
}
