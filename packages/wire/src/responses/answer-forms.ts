import { asRecord, stringOrEmpty } from '../json/record.ts'
import {
  type AnswerForms,
  isErrorBody,
  type Json,
  namedFrame,
  recordsInList,
  type StreamEvent,
} from '../answer-forms.ts'

type Event = Json & { readonly type: string }

/** Converts responses of the Responses API between one JSON object and a stream of events. */
export const responsesAnswerForms: AnswerForms = {
  whole(events) {
    const response = asRecord(events.findLast(({ data }) => isEnd(data['type']))?.data['response'])
    if (!response || recordsInList(response['output']).length > 0) return response
    const output = doneItems(events)
    return output.length > 0 ? { ...response, output } : response
  },
  frames(whole) {
    const begun = { ...whole, status: 'in_progress', output: [], usage: null, completed_at: null }
    const events: Event[] = [
      { type: 'response.created', response: begun },
      { type: 'response.in_progress', response: begun },
      ...recordsInList(whole['output']).flatMap((item, index) => itemEvents(item, index)),
      { type: endOf(whole), response: whole },
    ]
    return events
      .map((event, sequence_number) => namedFrame(Object.assign({}, event, { sequence_number })))
      .join('')
  },
  isComplete(whole) {
    if (isErrorBody(whole) || whole['status'] !== 'completed') return false
    return !recordsInList(whole['output']).some((item) =>
      recordsInList(item['content']).some(({ type }) => type === 'refusal'),
    )
  },
}

/** The items of a stream, for servers whose last event does not repeat them, such as ChatGPT's for Codex. */
function doneItems(events: readonly StreamEvent[]): unknown[] {
  const items = new Map<number, unknown>()
  for (const { data } of events) {
    if (data['type'] !== 'response.output_item.done') continue
    const { output_index: index, item } = data
    items.set(typeof index === 'number' ? index : items.size, item)
  }
  return [...items].toSorted(([a], [b]) => a - b).map(([, item]) => item)
}

const ENDS: ReadonlySet<unknown> = new Set(['completed', 'incomplete', 'failed'])

function isEnd(type: unknown): boolean {
  return typeof type === 'string' && ENDS.has(type.slice('response.'.length))
}

/** The type of the last event of a response. */
function endOf({ status }: Json): string {
  return `response.${ENDS.has(status) ? String(status) : 'completed'}`
}

/** The text parts of items that are streamed; `list` is the field of the item that contains them. */
const PARTS = [
  { list: 'content', type: 'output_text', place: 'content_index', part: 'content_part', text: 'output_text' },
  {
    list: 'content',
    type: 'reasoning_text',
    place: 'content_index',
    part: 'content_part',
    text: 'reasoning_text',
  },
  {
    list: 'summary',
    type: 'summary_text',
    place: 'summary_index',
    part: 'reasoning_summary_part',
    text: 'reasoning_summary_text',
  },
] as const

/** The items whose arguments or input are streamed as one text. */
const INPUTS = [
  { type: 'function_call', member: 'arguments', event: 'function_call_arguments' },
  { type: 'custom_tool_call', member: 'input', event: 'custom_tool_call_input' },
  { type: 'mcp_call', member: 'arguments', event: 'mcp_call_arguments' },
] as const

function itemEvents(item: Json, output_index: number): Event[] {
  const at = { output_index, ...(item['id'] !== undefined && { item_id: item['id'] }) }
  const started: Json = { ...item, ...(item['status'] !== undefined && { status: 'in_progress' }) }
  const between: Event[] = []
  for (const list of ['content', 'summary'] as const) {
    const parts = recordsInList(item[list])
    if (parts.length === 0 || !parts.every(({ type }) => formOf(list, type))) continue
    started[list] = []
    for (const [index, part] of parts.entries()) between.push(...partEvents(list, part, index, at))
  }
  const input = INPUTS.find(({ type }) => type === item['type'])
  if (input) {
    const text = stringOrEmpty(item[input.member])
    started[input.member] = ''
    between.push(
      { type: `response.${input.event}.delta`, ...at, delta: text },
      { type: `response.${input.event}.done`, ...at, [input.member]: text },
    )
  }
  return [
    { type: 'response.output_item.added', output_index, item: started },
    ...between,
    { type: 'response.output_item.done', output_index, item },
  ]
}

function formOf(list: 'content' | 'summary', type: unknown) {
  return PARTS.find((one) => one.list === list && one.type === type)
}

function partEvents(list: 'content' | 'summary', part: Json, index: number, item: Json): Event[] {
  const form = formOf(list, part['type'])
  if (!form) return []
  const at = { ...item, [form.place]: index }
  const text = stringOrEmpty(part['text'])
  const annotations = recordsInList(part['annotations'])
  const emptied = { ...part, text: '', ...(part['annotations'] !== undefined && { annotations: [] }) }
  const logprobs = Array.isArray(part['logprobs']) ? { logprobs: part['logprobs'] } : {}
  return [
    { type: `response.${form.part}.added`, ...at, part: emptied },
    { type: `response.${form.text}.delta`, ...at, delta: text, ...logprobs },
    ...annotations.map((annotation, annotation_index) => ({
      type: 'response.output_text.annotation.added',
      ...at,
      annotation_index,
      annotation,
    })),
    { type: `response.${form.text}.done`, ...at, text, ...logprobs },
    { type: `response.${form.part}.done`, ...at, part },
  ]
}
