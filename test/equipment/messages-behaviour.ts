import type { Streamed, Whole } from './behaviour.ts'

/** Token counts as the messages dialect reports them. */
export interface MessagesCounts {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cache_read_input_tokens?: number
  readonly cache_creation_input_tokens?: number
}

/** A content block; the input of a call is given as JSON text, which a stream splits into two pieces. */
export type Block =
  | { readonly text: string }
  | { readonly thinking: string; readonly signature: string }
  | { readonly id: string; readonly name: string; readonly input: string }

const COUNTS: MessagesCounts = { input_tokens: 10, output_tokens: 5 }
const HEAD =
  '{"id":"msg_upstream",  "type":"message","role":"assistant","model":"upstream-model","x_unknown":9007199254740993'

interface MessageOptions {
  readonly counts?: MessagesCounts
  readonly stop?: string
}

/** A whole response of the messages dialect. Unusual spacing and a large value reveal any rewriting. */
export function wholeMessage(
  blocks: readonly Block[],
  { counts = COUNTS, stop }: MessageOptions = {},
): Whole {
  const content = blocks.map((block) => {
    if ('text' in block) return JSON.stringify({ type: 'text', text: block.text })
    if ('thinking' in block) return JSON.stringify({ type: 'thinking', ...block })
    const { id, name, input } = block
    return `{"type":"tool_use","id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"input":${input}}`
  })
  const tail = `"stop_reason":"${stop ?? stopOf(blocks)}","stop_sequence":null,"usage":${JSON.stringify(counts)}`
  return { kind: 'whole', body: `${HEAD},"content":[${content.join(',')}],${tail}}\n` }
}

/** The same content as a stream. */
export function streamedMessage(blocks: readonly Block[], answer: MessageOptions = {}): Streamed {
  return { kind: 'stream', ending: 'no done', frames: messageFrames(blocks, answer) }
}

/** The frames of such a stream. */
export function messageFrames(
  blocks: readonly Block[],
  { counts = COUNTS, stop }: MessageOptions = {},
): string[] {
  const { output_tokens: output, ...prompt } = counts
  const usage = JSON.stringify({ ...prompt, output_tokens: 1 })
  const start = `${HEAD},"content":[],"stop_reason":null,"stop_sequence":null,"usage":${usage}}`
  return [
    `event: message_start\ndata: {"type":"message_start","message":${start}}\n\n`,
    ...blocks.flatMap((block, index) => [
      eventFrame('content_block_start', { index, content_block: startOf(block) }),
      PING_FRAME,
      ...deltasOf(block).map((delta) => eventFrame('content_block_delta', { index, delta })),
      eventFrame('content_block_stop', { index }),
    ]),
    eventFrame('message_delta', {
      delta: { stop_reason: stop ?? stopOf(blocks), stop_sequence: null },
      usage: { output_tokens: output },
    }),
    STOP_FRAME,
  ]
}

/** An event of the messages dialect. */
export function eventFrame(type: string, fields: object = {}): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

export const PING_FRAME = eventFrame('ping')
export const STOP_FRAME = eventFrame('message_stop')

/** An error body of the messages dialect. */
export function messagesErrorText(type: string, message: string): string {
  return JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_upstream' })
}

function stopOf(blocks: readonly Block[]): string {
  return blocks.some((block) => 'input' in block) ? 'tool_use' : 'end_turn'
}

function startOf(block: Block): object {
  if ('text' in block) return { type: 'text', text: '' }
  if ('thinking' in block) return { type: 'thinking', thinking: '', signature: '' }
  return { type: 'tool_use', id: block.id, name: block.name, input: {} }
}

function deltasOf(block: Block): object[] {
  if ('text' in block) return halves(block.text).map((text) => ({ type: 'text_delta', text }))
  if ('thinking' in block) {
    const { thinking, signature } = block
    return [
      ...halves(thinking).map((text) => ({ type: 'thinking_delta', thinking: text })),
      { type: 'signature_delta', signature },
    ]
  }
  return halves(block.input).map((text) => ({ type: 'input_json_delta', partial_json: text }))
}

function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)]
}
