import { asRecord } from '../json/record.ts'
import { type AnswerForms, type Json, namedFrame, recordsInList } from '../answer-forms.ts'

/** Members of an event with an image that belong to the whole answer. */
const OF_ANSWER = ['background', 'output_format', 'quality', 'size'] as const
/** Members that do not belong to the image itself. */
const OF_EVENT: ReadonlySet<string> = new Set([
  ...OF_ANSWER,
  'type',
  'sequence_number',
  'created_at',
  'usage',
])

/** Converts answers with images between one JSON object and a stream of events of this kind. */
export const imageAnswerForms = (kind: 'image_generation' | 'image_edit'): AnswerForms => ({
  whole(events) {
    const finals = events.map(({ data }) => data).filter(({ type }) => type === `${kind}.completed`)
    const last = finals.at(-1)
    if (!last) return undefined
    const members = OF_ANSWER.flatMap((name) => (last[name] === undefined ? [] : [[name, last[name]]]))
    const usage = finals.map((final) => final['usage']).reduce(sumOf)
    return {
      created: last['created_at'],
      data: finals.map((final) =>
        Object.fromEntries(Object.entries(final).filter(([name]) => !OF_EVENT.has(name))),
      ),
      ...(Object.fromEntries(members) as Json),
      ...(usage !== undefined && { usage }),
    }
  },
  frames(whole) {
    const { data, created, usage, ...others } = whole
    const images = recordsInList(data)
    return images
      .map((image, at) => ({
        type: `${kind}.completed`,
        created_at: created,
        ...others,
        ...image,
        ...(at === images.length - 1 && usage !== undefined && { usage }),
      }))
      .map(namedFrame)
      .join('')
  },
  isComplete: ({ data }) => recordsInList(data).length > 0,
})

/** The sum of two usages, member by member. */
function sumOf(one: unknown, other: unknown): unknown {
  if (typeof one === 'number' && typeof other === 'number') return one + other
  const [first, second] = [asRecord(one), asRecord(other)]
  if (!first || !second) return other ?? one
  const names = Object.keys({ ...first, ...second })
  return Object.fromEntries(names.map((name) => [name, sumOf(first[name], second[name])]))
}

/** Converts transcripts between one JSON object and a stream of events. */
export const transcriptAnswerForms: AnswerForms = {
  whole(events) {
    const last = asRecord(events.findLast(({ data }) => data['type'] === 'transcript.text.done')?.data)
    if (!last) return undefined
    const { type: _type, ...whole } = last
    return whole
  },
  frames(whole) {
    const { text, usage, logprobs } = whole
    const last = { text, ...(logprobs !== undefined && { logprobs }), ...(usage !== undefined && { usage }) }
    const events = [
      { type: 'transcript.text.delta', delta: text },
      { type: 'transcript.text.done', ...last },
    ]
    return events.map(namedFrame).join('')
  },
  isComplete: ({ text }) => typeof text === 'string',
}
