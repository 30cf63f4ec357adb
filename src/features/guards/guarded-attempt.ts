import { CHAT_REQUEST } from '@sluice/wire/chat'
import { CONVERSE_REQUEST } from '@sluice/wire/converse'
import { GEMINI_REQUEST } from '@sluice/wire/gemini'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import { CLIENT_PROTOCOLS, type ClientProtocol, type ProtocolName } from '@sluice/wire/protocols'
import { MESSAGES_REQUEST } from '@sluice/wire/messages'
import { RERANK_REQUEST } from '@sluice/wire/rerank'
import { RESPONSES_REQUEST } from '@sluice/wire/responses'
import type { Shape } from '@sluice/wire/shape/define-shape'
import type { MediaPart } from '@sluice/wire/conversation'
import type { EventMemory } from '@sluice/wire/sse/frame-splitter'
import type { RunningCall } from '../../call/running-call.ts'
import type { MediaPlace } from '../../call/media-fetcher.ts'
import type { CallGuards } from './call-guards.ts'
import type { AttemptRequest } from '../../call/request-stages.ts'
import { guardedFile } from './guarded-file.ts'
import { applyGuardsToScan } from './guarded-request.ts'
import { guardedPassthrough } from './guarded-passthrough.ts'
import { checkWholeReply } from './guarded-reply.ts'
import { GuardedTap } from './guarded-tap.ts'

/**
 * Whether providers of a protocol sign their reasoning. Such providers refuse changed reasoning in later
 * requests.
 */
const SIGNS_REASONING: Readonly<Record<ProtocolName, boolean>> = {
  chat: false,
  messages: true,
  responses: false,
  gemini: false,
  converse: true,
  rerank: false,
}

/** The shapes of requests to the providers of a protocol. */
const REQUESTS: Readonly<Record<ProtocolName, Shape>> = {
  chat: CHAT_REQUEST,
  messages: MESSAGES_REQUEST,
  responses: RESPONSES_REQUEST,
  gemini: GEMINI_REQUEST,
  converse: CONVERSE_REQUEST,
  rerank: RERANK_REQUEST,
}

/**
 * Returns the request with a reader of the answer that lets the guards check it, whatever the protocols of
 * client and channel are.
 */
function withCheckedAnswer(
  request: AttemptRequest,
  guards: CallGuards,
  { plan }: Pick<RunningCall, 'plan'>,
): AttemptRequest {
  if (!guards.concernsAnswer) return request
  if (request.passed) return { ...request, passed: guardedPassthrough(request.passed, guards) }
  const { name } = plan.dialect
  // If the dialect has a `streamType`, the stream is one JSON array instead of events.
  const isArray = plan.dialect.streamType !== undefined
  const answer = { dialect: name, signsReasoning: SIGNS_REASONING[request.protocol] }
  const reply: AttemptRequest['reply'] = (bytes) => checkWholeReply(request.reply(bytes), guards, answer)
  const dialect = CLIENT_PROTOCOLS.find((one): one is ClientProtocol => one === name)
  if (!dialect) return { ...request, reply }
  const origin = { ...answer, dialect }
  return {
    ...request,
    turns: () => guards.turnsUntil(() => false),
    tap(promptTokens, memory) {
      const [inner, outer] = sharedMemory(memory)
      return new GuardedTap(request.tap(promptTokens, inner), { guards, ...origin, isArray }, outer)
    },
    reply,
  }
}

/**
 * Returns the request with a checked answer. Signed reasoning that was converted is checked, because its signature does not
 * cover it any more. `docs/guards.md: Places`.
 */
export function guardedAttempt(
  guards: CallGuards,
  call: Pick<RunningCall, 'plan'>,
  request: AttemptRequest,
): AttemptRequest | Promise<AttemptRequest> {
  const checked = withCheckedAnswer(request, guards, call)
  const { body, protocol } = request
  if (!guards.hasLeftSigned || protocol === call.plan.dialect.name || !Buffer.isBuffer(body)) return checked
  return applyGuardsToScan(guards, scanObject(body, RESPONSE_LIMITS), REQUESTS[protocol]).then(
    ({ bytes }) => ({ ...checked, body: bytes }),
  )
}

/** Checks a file that was fetched for a request. `docs/guards.md: Files of text`. */
export async function guardedFetched(
  guards: CallGuards,
  call: Pick<RunningCall, 'takeMemory'>,
  part: MediaPart,
  place: MediaPlace,
): Promise<MediaPart> {
  const held = guards.pseudonyms.bytes
  const next = await guardedFile(guards, part, place)
  call.takeMemory(guards.pseudonyms.bytes - held)
  // The header of a stream tells what guards decided about its request, of which the file is a part.
  guards.ofRequest = guards.text
  return next
}

/** Splits the memory account of a stream's events into two parts. The sum of the parts is counted in the account. */
function sharedMemory(memory: EventMemory): readonly [EventMemory, EventMemory] {
  const held = [0, 0]
  const part = (index: number): EventMemory => ({
    resize(bytes) {
      held[index] = bytes
      memory.resize(held.reduce((sum, one) => sum + one))
    },
  })
  return [part(0), part(1)]
}
