import { asRecord, parseRecord, stringOrEmpty } from '../json/record.ts'
import { blockIndex, isRepeatedMessageStart } from './event.ts'
import { grownBlock } from './grown-block.ts'
import { mergedUsage } from './usage.ts'
import { type AnswerForms, isErrorBody, type Json, namedFrame, recordsInList } from '../answer-forms.ts'

const OWN_ENDS: ReadonlySet<unknown> = new Set(['end_turn', 'tool_use', 'stop_sequence'])

/** The text fields of blocks that grow in a stream, and the deltas that continue them. */
const GROWING = [
  { member: 'text', delta: 'text_delta', piece: 'text' },
  { member: 'thinking', delta: 'thinking_delta', piece: 'thinking' },
  { member: 'signature', delta: 'signature_delta', piece: 'signature' },
] as const

/** The blocks that begin with their first delta if an upstream does not announce them. */
const BEGUN_BY: ReadonlyMap<unknown, Json> = new Map([
  ['text_delta', { type: 'text' }],
  ['thinking_delta', { type: 'thinking' }],
])

/** Converts responses of the messages protocol between one JSON object and a stream of events. */
export const messagesAnswerForms: AnswerForms = {
  whole(events) {
    let message: Json | undefined
    const blocks = new Map<number, Json>()
    const inputs = new Map<number, string>()
    for (const { data } of events) {
      const at = blockIndex(data)
      switch (data['type']) {
        case 'message_start': {
          const started = asRecord(data['message']) ?? {}
          if (message && !isRepeatedMessageStart(message['id'], started['id'])) return undefined
          // Some upstreams begin with the whole message.
          if (!message)
            for (const [index, block] of recordsInList(started['content']).entries()) blocks.set(index, block)
          message = message
            ? { ...message, usage: mergedUsage(asRecord(started['usage']), message['usage']) }
            : { ...started }
          break
        }
        case 'content_block_start':
          blocks.set(at, { ...asRecord(data['content_block']) })
          break
        case 'content_block_delta': {
          const delta = asRecord(data['delta']) ?? {}
          const block = blocks.get(at) ?? BEGUN_BY.get(delta['type'])
          if (!block) return undefined
          if (delta['type'] === 'input_json_delta')
            inputs.set(at, (inputs.get(at) ?? '') + stringOrEmpty(delta['partial_json']))
          else blocks.set(at, grownBlock(block, delta))
          break
        }
        case 'message_delta': {
          if (!message) return undefined
          const { type: _type, delta, usage, ...others } = data
          Object.assign(
            message,
            others,
            delta,
            usage && { usage: mergedUsage(asRecord(message['usage']), usage) },
          )
          break
        }
        default:
          if (isErrorBody(data)) return undefined
      }
    }
    if (!message) return undefined
    for (const [at, text] of inputs) {
      const block = blocks.get(at)
      // A call without parameters has no text; that of a call which was cut off is no JSON, so its input is empty.
      if (block && text !== '') blocks.set(at, { ...block, input: parseRecord(text) ?? {} })
    }
    return { ...message, content: [...blocks.values()] }
  },
  frames(whole) {
    const { content, stop_reason, stop_sequence = null, stop_details, usage, ...rest } = whole
    const isDetailed = stop_details !== undefined
    const started = {
      ...rest,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      ...(isDetailed && { stop_details: null }),
      usage: { ...asRecord(usage), output_tokens: 0 },
    }
    const blocks = recordsInList(content).flatMap((block, index) => [
      { type: 'content_block_start', index, content_block: emptied(block) },
      ...deltasOf(block).map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ])
    const frames = [
      { type: 'message_start', message: started },
      ...blocks,
      {
        type: 'message_delta',
        delta: { stop_reason, stop_sequence, ...(isDetailed && { stop_details }) },
        usage,
      },
      { type: 'message_stop' },
    ]
    return frames.map(namedFrame).join('')
  },
  isComplete: (whole) =>
    !isErrorBody(whole) && Array.isArray(whole['content']) && OWN_ENDS.has(whole['stop_reason']),
}

/** Returns a block in the form with which it starts in a stream, before its deltas. */
function emptied(block: Json): Json {
  const start = { ...block }
  for (const { member } of GROWING) if (typeof block[member] === 'string') start[member] = ''
  if (hasInput(block)) start['input'] = {}
  if (recordsInList(block['citations']).length > 0) start['citations'] = []
  return start
}

function deltasOf(block: Json): Json[] {
  const citations = recordsInList(block['citations']).map((citation) => ({
    type: 'citations_delta',
    citation,
  }))
  const texts = GROWING.flatMap(({ member, delta, piece }) => {
    const text = stringOrEmpty(block[member])
    return text === '' ? [] : [{ type: delta, [piece]: text }]
  })
  const input = hasInput(block)
    ? [{ type: 'input_json_delta', partial_json: JSON.stringify(block['input']) }]
    : []
  return [...citations, ...texts, ...input]
}

function hasInput(block: Json): boolean {
  return Object.keys(asRecord(block['input']) ?? {}).length > 0
}
