import { asRecord, parseRecord, stringOrEmpty } from '../json/record.ts'
import { type AnswerForms, isErrorBody, type Json, namedFrame, recordsInList } from '../answer-forms.ts'

const OWN_ENDS: ReadonlySet<unknown> = new Set(['end_turn', 'tool_use', 'stop_sequence'])

/** The text fields of blocks that grow in a stream, and the deltas that continue them. */
const GROWING = [
  { member: 'text', delta: 'text_delta', piece: 'text' },
  { member: 'thinking', delta: 'thinking_delta', piece: 'thinking' },
  { member: 'signature', delta: 'signature_delta', piece: 'signature' },
] as const

/** Converts responses of the messages protocol between one JSON object and a stream of events. */
export const messagesAnswerForms: AnswerForms = {
  whole(events) {
    let message: Json | undefined
    const blocks = new Map<unknown, Json>()
    const inputs = new Map<unknown, string>()
    for (const { data } of events) {
      const at = data['index']
      const block = blocks.get(at)
      switch (data['type']) {
        case 'message_start':
          message = { ...asRecord(data['message']) }
          break
        case 'content_block_start':
          blocks.set(at, { ...asRecord(data['content_block']) })
          break
        case 'content_block_delta':
          if (
            !block ||
            !grow(block, asRecord(data['delta']) ?? {}, (text) =>
              inputs.set(at, (inputs.get(at) ?? '') + text),
            )
          )
            return undefined
          break
        case 'message_delta': {
          if (!message) return undefined
          const { type: _type, delta, usage, ...others } = data
          Object.assign(
            message,
            others,
            delta,
            usage && { usage: { ...asRecord(message['usage']), ...asRecord(usage) } },
          )
          break
        }
        case 'error':
          return undefined
        default:
      }
    }
    if (!message) return undefined
    for (const [at, text] of inputs) {
      const input = parseRecord(text)
      if (!input) return undefined
      ;(blocks.get(at) as Json)['input'] = input
    }
    return { ...message, content: [...blocks.values()] }
  },
  frames(whole) {
    const { content, stop_reason, stop_sequence = null, usage, ...rest } = whole
    const started = {
      ...rest,
      content: [],
      stop_reason: null,
      stop_sequence: null,
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
      { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage },
      { type: 'message_stop' },
    ]
    return frames.map(namedFrame).join('')
  },
  isComplete: (whole) =>
    !isErrorBody(whole) && Array.isArray(whole['content']) && OWN_ENDS.has(whole['stop_reason']),
}

/** Adds a delta to a block. Returns false if the type of the delta is unknown. */
function grow(block: Json, delta: Json, addInput: (text: string) => void): boolean {
  const growing = GROWING.find((one) => one.delta === delta['type'])
  if (growing)
    block[growing.member] = stringOrEmpty(block[growing.member]) + stringOrEmpty(delta[growing.piece])
  else if (delta['type'] === 'input_json_delta') addInput(stringOrEmpty(delta['partial_json']))
  else if (delta['type'] === 'citations_delta')
    block['citations'] = [...recordsInList(block['citations']), delta['citation']]
  else return false
  return true
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
