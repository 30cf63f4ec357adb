import { type Facts, finishAfter, type Finish, type Json, UNREAD, type Usage } from './facts.ts'

const LENGTH = new Set(['MAX_TOKENS'])
const FILTERED =
  /SAFETY|RECITATION|BLOCKLIST|PROHIBITED_CONTENT|SPII|IMAGE_PROHIBITED_CONTENT|IMAGE_RECITATION|MODEL_ARMOR/

/** Reads the first candidate of a Gemini answer: an answer, or the chunks of a stream. */
export function geminiFacts(events: readonly Json[], whole: boolean): Facts {
  const candidates = events.flatMap((event) =>
    ((event['candidates'] ?? []) as Json[]).filter(({ index = 0 }) => index === 0),
  )
  const parts = candidates.flatMap((candidate) => (candidate['content']?.parts ?? []) as Json[])
  const textOf = (isThought: boolean): string =>
    parts
      .filter(({ thought }) => (thought === true) === isThought)
      .map(({ text, inlineData: data }) =>
        data ? `![image](data:${data.mimeType};base64,${data.data})` : (text ?? ''),
      )
      .join('')
  const calls = parts
    .filter(({ functionCall }) => functionCall?.name)
    .map(({ functionCall: call }) => ({
      id: call.id,
      name: call.name,
      input: call.partialArgs || call.willContinue ? UNREAD : ((call.args ?? {}) as unknown),
    }))
  const reasons = candidates.map(({ finishReason }) => finishReason as string | undefined).filter(isStated)
  const usage = events.findLast((event) => event['usageMetadata']?.promptTokenCount !== undefined)?.[
    'usageMetadata'
  ]
  return {
    text: textOf(false),
    reasoning: textOf(true),
    refusal: '',
    explanation: explanationIn(events, candidates),
    calls,
    finish: finishAfter(calls, finishOf(reasons.at(-1))),
    usage: usage && usageOf(usage),
    ends: whole ? 1 : reasons.length,
    errors: events.filter((event) => event['error']).length,
  }
}

/** The words about a blocked prompt, or of the candidate that was filtered. */
function explanationIn(events: readonly Json[], candidates: readonly Json[]): string {
  const filtered = candidates.filter(({ finishReason }) => finishOf(finishReason) === 'filter')
  const texts =
    candidates.length > 0
      ? filtered.map(({ finishMessage }) => finishMessage)
      : events.map((event) => event['promptFeedback']?.blockReasonMessage)
  return texts.map((text) => text ?? '').join('')
}

function isStated(reason: string | undefined): reason is string {
  return reason !== undefined && reason !== 'FINISH_REASON_UNSPECIFIED'
}

function finishOf(reason: string | undefined): Finish | undefined {
  if (reason === undefined) return undefined
  if (LENGTH.has(reason)) return 'length'
  return FILTERED.test(reason) ? 'filter' : 'stop'
}

function usageOf(usage: Json): Usage {
  const of = (name: string): number => (usage[name] ?? 0) as number
  return {
    prompt: of('promptTokenCount') + of('toolUsePromptTokenCount'),
    cached: of('cachedContentTokenCount'),
    output: of('candidatesTokenCount') + of('thoughtsTokenCount'),
  }
}
