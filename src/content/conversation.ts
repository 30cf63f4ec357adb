import { chatCodec, CHAT_PROMPT_RULES, COMPLETIONS_PROMPT_RULES } from '@sluice/wire/chat'
import type { UpstreamCodec } from '@sluice/wire/codec'
import { geminiCodec, GEMINI_PROMPT_RULES } from '@sluice/wire/gemini'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import { IMAGES_REQUEST, SPEECH_REQUEST } from '@sluice/wire/media'
import { messagesCodec, MESSAGES_PROMPT_RULES } from '@sluice/wire/messages'
import type { PromptRules } from '@sluice/wire/prompt-text'
import { type ReadableTurn, turnsOfAnswer, turnsOfRequest } from '@sluice/wire/readable-turns'
import { responsesCodec, RESPONSES_PROMPT_RULES } from '@sluice/wire/responses'
import type { CallKind } from '../domain/endpoints.ts'
import { partsOfContent } from './parts.ts'

/** How requests and answers of an endpoint are read. */
interface Reader {
  readonly request: Pick<PromptRules, 'shape' | 'media'>
  /** Absent if answers have no common form. */
  readonly answer?: UpstreamCodec
  /** Builds a request that contains a part of an answer. Parts that the codec leaves opaque are read from it. */
  readonly withPart?: (json: string) => string
}

const READERS: Readonly<Partial<Record<CallKind, Reader>>> = {
  chat: { request: CHAT_PROMPT_RULES, answer: chatCodec },
  // The answer of a completion is shown as JSON, because its text is not where a chat answer has it.
  completions: { request: COMPLETIONS_PROMPT_RULES, answer: chatCodec },
  gemini: {
    request: GEMINI_PROMPT_RULES,
    answer: geminiCodec,
    withPart: (json) => `{"contents":[{"role":"model","parts":[${json}]}]}`,
  },
  images: { request: { shape: IMAGES_REQUEST, media: [] } },
  messages: {
    request: MESSAGES_PROMPT_RULES,
    answer: messagesCodec,
    withPart: (json) => `{"messages":[{"role":"assistant","content":[${json}]}]}`,
  },
  responses: {
    request: RESPONSES_PROMPT_RULES,
    answer: responsesCodec,
    withPart: (json) => `{"input":[${json}]}`,
  },
  speech: { request: { shape: SPEECH_REQUEST, media: [] } },
}

/**
 * The conversation of a call as the client saw it; undefined if its request cannot be read. An answer that is JSON, but
 * cannot be decoded, is shown as it is. `docs/api.md: Content log`.
 */
export function conversationOfContent(
  kind: CallKind,
  content: Uint8Array,
  lengths: readonly number[],
): readonly ReadableTurn[] | undefined {
  const reader = READERS[kind]
  const parts = partsOfContent(content, lengths)
  const { request_received: request, answer_sent: answer = parts.answer_received } = parts
  const asked = reader && request && attempt(() => turnsOfRequest(scanObject(request), reader.request))
  if (!asked || asked.length === 0) return undefined
  return [...asked, ...(answer ? answerTurns(answer, reader) : [])]
}

/**
 * Maximum size in bytes of an answer that is read. The events of a larger one could take seconds, during which other
 * readers wait.
 */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024

function answerTurns(answer: Buffer, reader: Reader): readonly ReadableTurn[] {
  const { answer: codec } = reader
  if (!codec || answer.length > MAX_ANSWER_BYTES) return []
  const turns = attempt(() => turnsOfAnswer(codec, answer, (json) => turnsOfPart(json, reader)))
  if (turns && turns.length > 0) return turns
  const isObject = attempt(() => scanObject(answer, RESPONSE_LIMITS)) !== undefined
  return isObject ? [{ role: 'assistant', parts: [{ kind: 'opaque', json: answer.toString() }] }] : []
}

/** Reads a part that only the answer's dialect has. Some items of responses do not state their role. */
function turnsOfPart(json: string, { request, withPart }: Reader): readonly ReadableTurn[] {
  const turns =
    withPart &&
    attempt(() => turnsOfRequest(scanObject(Buffer.from(withPart(json)), RESPONSE_LIMITS), request))
  if (!turns || turns.length === 0) return [{ role: 'assistant', parts: [{ kind: 'opaque', json }] }]
  return turns.map(({ role, parts }) => ({ role: role === 'tool' ? role : 'assistant', parts }))
}

function attempt<Read>(read: () => Read): Read | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
