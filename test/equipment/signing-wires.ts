import type { SignedPart, SigningWire } from './signing-model.ts'

type Fields = Readonly<Record<string, unknown>>

const INPUT = '{"at":"Bern"}'

function list(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? (value as Fields[]) : []
}

function eventFrame(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

function blockOf(part: SignedPart): Fields {
  if ('thought' in part) return { type: 'thinking', thinking: part.thought, signature: part.signature }
  if ('redacted' in part) return { type: 'redacted_thinking', data: part.redacted }
  if (!('call' in part)) return { type: 'text', text: 'text' in part ? part.text : '' }
  return { type: 'tool_use', id: part.call, name: 'look', input: JSON.parse(INPUT) as unknown }
}

function partOfBlock(block: Fields): SignedPart {
  switch (block['type']) {
    case 'thinking':
      return { thought: String(block['thinking']), signature: String(block['signature']) }
    case 'redacted_thinking':
      return { redacted: String(block['data']) }
    case 'tool_use':
      return { call: String(block['id']) }
    default:
      return { text: String(block['text']) }
  }
}

/** The start of a block, and the deltas that complete it. */
function growthOf(block: Fields): { readonly start: Fields; readonly deltas: readonly Fields[] } {
  switch (block['type']) {
    case 'thinking':
      return {
        start: { ...block, thinking: '', signature: '' },
        deltas: [
          { type: 'thinking_delta', thinking: block['thinking'] },
          { type: 'signature_delta', signature: block['signature'] },
        ],
      }
    case 'text':
      return { start: { ...block, text: '' }, deltas: [{ type: 'text_delta', text: block['text'] }] }
    case 'tool_use':
      return {
        start: { ...block, input: {} },
        deltas: [{ type: 'input_json_delta', partial_json: JSON.stringify(block['input']) }],
      }
    default:
      return { start: block, deltas: [] }
  }
}

function stopOf(parts: readonly SignedPart[]): string {
  return parts.some((part) => 'call' in part) ? 'tool_use' : 'end_turn'
}

/** Messages: thoughts are blocks with a signature, or encrypted as a whole. */
export const messagesWire: SigningWire = {
  history: 'messages',
  steps: [
    ['think', 'redact', 'say', 'call'],
    ['think', 'call', 'think', 'say', 'call'],
    ['think', 'say', 'think', 'say'],
  ],
  partsIn: ({ messages }) =>
    list(messages).flatMap(({ role, content }) =>
      role === 'assistant' ? list(content).map(partOfBlock) : [],
    ),
  lacks: ({ thinking }) =>
    (thinking as Fields | undefined)?.['type'] === 'enabled'
      ? undefined
      : 'the request does not ask to think',
  whole: (parts, id) =>
    JSON.stringify({
      id: `msg_${id}`,
      type: 'message',
      role: 'assistant',
      model: 'upstream',
      content: parts.map(blockOf),
      stop_reason: stopOf(parts),
      stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 5 },
    }),
  frames: (parts, id) => [
    eventFrame('message_start', {
      message: {
        id: `msg_${id}`,
        type: 'message',
        role: 'assistant',
        model: 'upstream',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 10, output_tokens: 1 },
      },
    }),
    ...parts.map(blockOf).flatMap((block, index) => {
      const { start, deltas } = growthOf(block)
      return [
        eventFrame('content_block_start', { index, content_block: start }),
        ...deltas.map((delta) => eventFrame('content_block_delta', { index, delta })),
        eventFrame('content_block_stop', { index }),
      ]
    }),
    eventFrame('message_delta', {
      delta: { stop_reason: stopOf(parts), stop_sequence: null },
      usage: { output_tokens: 5 },
    }),
    eventFrame('message_stop', {}),
  ],
}

function itemOf(part: SignedPart, id: string): Fields {
  if ('thought' in part)
    return {
      id: `rs_${id}`,
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: part.thought }],
      encrypted_content: part.signature,
    }
  if ('call' in part)
    return {
      id: `fc_${id}`,
      type: 'function_call',
      status: 'completed',
      call_id: part.call,
      name: 'look',
      arguments: INPUT,
    }
  const text = 'text' in part ? part.text : ''
  return {
    id: `msg_${id}`,
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', text, annotations: [] }],
  }
}

function partsOfItem(item: Fields): SignedPart[] {
  switch (item['type']) {
    case 'reasoning':
      return [
        {
          thought: list(item['summary'])
            .map(({ text }) => String(text))
            .join('\n\n'),
          signature: String(item['encrypted_content']),
        },
      ]
    case 'function_call':
      return [{ call: String(item['call_id']) }]
    case 'message': {
      if (item['role'] !== 'assistant') return []
      const content = item['content']
      if (typeof content === 'string') return [{ text: content }]
      return list(content).map(({ text }) => ({ text: String(text) }))
    }
    default:
      return []
  }
}

function responseOf(parts: readonly SignedPart[], id: string, status: string): Fields {
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: 1_700_000_000,
    status,
    model: 'upstream',
    output: parts.map((part, index) => itemOf(part, `${id}_${index}`)),
    usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
  }
}

/** Responses: thoughts are items with encrypted content. */
export const responsesWire: SigningWire = {
  history: 'input',
  steps: [
    ['think', 'say', 'call'],
    ['think', 'call', 'think', 'say', 'call'],
    ['think', 'say', 'think', 'say'],
  ],
  partsIn: ({ input }) => list(input).flatMap(partsOfItem),
  lacks: ({ include }) =>
    list(include).some((name) => (name as unknown) === 'reasoning.encrypted_content')
      ? undefined
      : 'the request does not ask for encrypted reasoning',
  whole: (parts, id) => JSON.stringify(responseOf(parts, id, 'completed')),
  frames: (parts, id) => [
    eventFrame('response.created', { response: responseOf([], id, 'in_progress') }),
    ...parts.flatMap((part, index) => {
      const item = itemOf(part, `${id}_${index}`)
      return [
        eventFrame('response.output_item.added', {
          output_index: index,
          item: { ...item, encrypted_content: undefined, summary: [], content: [], arguments: '' },
        }),
        eventFrame('response.output_item.done', { output_index: index, item }),
      ]
    }),
    eventFrame('response.completed', { response: responseOf(parts, id, 'completed') }),
  ],
}
