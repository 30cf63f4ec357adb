import { asRecord, stringOrEmpty } from '../json/record.ts'
import { type AnswerForms, isErrorBody, type Json, dataFrame, recordsInList } from '../answer-forms.ts'

/** Fields of a part with text. A part that has no other fields may be continued by the next part. */
const TEXT_MEMBERS: ReadonlySet<string> = new Set(['text', 'thought', 'thoughtSignature'])

/**
 * Converts Gemini's responses between one JSON object and a stream of events; one object is also a valid
 * stream with one event.
 */
export const geminiAnswerForms: AnswerForms = {
  whole(events) {
    const [first, ...others] = events
    if (!first || events.some(({ data }) => isErrorBody(data))) return undefined
    if (others.length === 0) return first.data
    const head: Json = {}
    const candidates = new Map<unknown, Json>()
    for (const { data } of events) {
      const { candidates: said, ...rest } = data
      Object.assign(head, rest)
      for (const candidate of recordsInList(said)) {
        const at = candidate['index'] ?? 0
        candidates.set(at, merged(candidates.get(at), candidate))
      }
    }
    return { candidates: [...candidates.values()], ...head }
  },
  frames: (whole) => dataFrame(whole),
  isComplete(whole) {
    const candidates = recordsInList(whole['candidates'])
    if (isErrorBody(whole) || asRecord(whole['promptFeedback'])?.['blockReason'] !== undefined) return false
    return candidates.length > 0 && candidates.every(({ finishReason }) => finishReason === 'STOP')
  },
}

/** Adds what a chunk states about a candidate. The list of parts that was merged before is changed itself. */
function merged(before: Json | undefined, { content, ...others }: Json): Json {
  const known = asRecord(before?.['content'])
  const added = asRecord(content)
  if (!known && !added) return { ...before, ...others }
  const parts = known ? (known['parts'] as Json[]) : []
  for (const part of recordsInList(added?.['parts'])) {
    const last = parts.at(-1)
    if (last && continues(last, part))
      parts[parts.length - 1] = {
        ...last,
        ...part,
        text: stringOrEmpty(last['text']) + stringOrEmpty(part['text']),
      }
    else parts.push(part)
  }
  return { ...before, content: { ...known, ...added, parts }, ...others }
}

// A part with a signature is complete, so the next text is a new part.
function continues(last: Json, part: Json): boolean {
  if (typeof last['text'] !== 'string' || typeof part['text'] !== 'string') return false
  if (last['thoughtSignature'] !== undefined || last['thought'] !== part['thought']) return false
  return [...Object.keys(last), ...Object.keys(part)].every((name) => TEXT_MEMBERS.has(name))
}
