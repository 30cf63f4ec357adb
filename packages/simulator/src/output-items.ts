import type { Fields } from './fields.ts'
import type { ModelOutput } from './model-output.ts'
import type { Tool } from './prompt.ts'
import { seededRandom } from './random.ts'
import type { ReplyTimeAndIds } from './upstream.ts'

/** An event of a stream, without its sequence number and without the item that it belongs to. */
export interface ItemEvent {
  readonly type: string
  readonly data: object
  readonly tokens: number
}

/** An item of a response: as it begins in a stream, as it is complete, and the events in between. */
export interface OutputItem {
  readonly added: Fields
  readonly complete: Fields
  readonly events: readonly ItemEvent[]
}

/** Settings of a request that determine how thoughts are shown. */
export interface ThoughtOptions {
  readonly summary: boolean
  readonly encrypted: boolean
}

/**
 * Renders an output as items: thoughts, text, calls. If the output was cut off, its last item is marked as
 * incomplete.
 */
export function outputItems(
  output: ModelOutput,
  shown: ThoughtOptions,
  stamp: ReplyTimeAndIds,
): OutputItem[] {
  const { thinking, text, calls, stopCause } = output
  const makers = [
    ...(thinking.length > 0 ? [() => reasoning(thinking, shown, stamp)] : []),
    ...(text.length > 0 ? [(status: string) => message(text, status, stamp)] : []),
    ...calls.map(
      ({ tool, input }) =>
        (status: string) =>
          call(tool, input, status, stamp),
    ),
  ]
  return makers.map((make, at) =>
    make(stopCause === 'length' && at === makers.length - 1 ? 'incomplete' : 'completed'),
  )
}

function reasoning(
  pieces: readonly string[],
  { summary, encrypted }: ThoughtOptions,
  stamp: ReplyTimeAndIds,
): OutputItem {
  const text = pieces.join('')
  const item = { id: stamp.id('rs_'), type: 'reasoning' }
  const part = { type: 'summary_text', text }
  const secret = encrypted ? { encrypted_content: encryptedText(text) } : {}
  const event = growth('response.reasoning_summary', { summary_index: 0 })
  return {
    added: { ...item, summary: [], ...secret },
    complete: { ...item, summary: summary ? [part] : [], ...secret },
    events: summary
      ? [
          event('_part.added', { part: { ...part, text: '' } }),
          ...pieces.map((delta) => event('_text.delta', { delta }, 1)),
          event('_text.done', { text }),
          event('_part.done', { part }),
        ]
      : pieces.map(() => pause()),
  }
}

function message(pieces: readonly string[], status: string, stamp: ReplyTimeAndIds): OutputItem {
  const item = { id: stamp.id('msg_'), type: 'message', role: 'assistant' }
  const part = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] })
  const text = pieces.join('')
  const event = growth('response.', { content_index: 0 })
  return {
    added: { ...item, status: 'in_progress', content: [] },
    complete: { ...item, status, content: [part(text)] },
    events: [
      event('content_part.added', { part: part('') }),
      ...pieces.map((delta) => event('output_text.delta', { delta, logprobs: [] }, 1)),
      event('output_text.done', { text, logprobs: [] }),
      event('content_part.done', { part: part(text) }),
    ],
  }
}

/** Renders a call of a function, or of a custom tool, whose input is plain text. */
function call(tool: Tool, pieces: readonly string[], status: string, stamp: ReplyTimeAndIds): OutputItem {
  const { type, prefix, member, growing } = tool.takesText ? CUSTOM : FUNCTION
  const item = {
    id: stamp.id(prefix),
    type,
    call_id: stamp.id('call_'),
    name: tool.name,
    ...(tool.namespace !== undefined && { namespace: tool.namespace }),
  }
  const whole = { [member]: pieces.join('') }
  const event = growth(`response.${growing}`, {})
  return {
    added: { ...item, status: 'in_progress', [member]: '' },
    complete: { ...item, status, ...whole },
    events: [...pieces.map((delta) => event('.delta', { delta }, 1)), event('.done', whole)],
  }
}

const FUNCTION = {
  type: 'function_call',
  prefix: 'fc_',
  member: 'arguments',
  growing: 'function_call_arguments',
}
const CUSTOM = {
  type: 'custom_tool_call',
  prefix: 'ctc_',
  member: 'input',
  growing: 'custom_tool_call_input',
}

function growth(prefix: string, place: object) {
  return (suffix: string, data: object, tokens = 0): ItemEvent => ({
    type: prefix + suffix,
    data: { ...place, ...data },
    tokens,
  })
}

/** An event without content, which takes the time of one token that the client does not see. */
function pause(): ItemEvent {
  return { type: '', data: {}, tokens: 1 }
}

/** Creates a placeholder for encrypted thoughts; equal thoughts get an equal one. */
function encryptedText(seed: string): string {
  const random = seededRandom(seed)
  return `gAAAA${Buffer.from(Array.from({ length: 120 }, () => Math.floor(random() * 256))).toString('base64url')}`
}
