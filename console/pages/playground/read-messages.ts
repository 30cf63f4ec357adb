import type { Content } from './answer.ts'

interface Block {
  readonly type?: string
  readonly id?: string
  readonly name?: string
  readonly text?: string
  readonly thinking?: string
  readonly signature?: string
  readonly input?: object
}

interface MessagesEvent {
  readonly type?: string
  readonly content?: readonly Block[]
  readonly content_block?: Block
  readonly delta?: Block & { readonly partial_json?: string }
  readonly error?: { readonly message?: string }
}

/** Adds to the content what an event of a stream, or a whole response, in the messages protocol contains. */
export function readMessages(content: Content, reply: unknown): Content {
  const { type, content: blocks, content_block: block, delta, error } = reply as MessagesEvent
  if (error) return { ...content, error: error.message ?? '' }
  if (type === 'content_block_start' && block) return withBlock(content, block, '')
  if (type === 'content_block_delta' && delta) return withDelta(content, delta)
  return (blocks ?? []).reduce((all, one) => withBlock(all, one, JSON.stringify(one.input ?? {})), content)
}

/**
 * Adds a block of a response to the content. In a stream, the input of a tool call follows in later events.
 */
function withBlock(content: Content, block: Block, input: string): Content {
  const { type, id = '', name = '', text = '', thinking = '', signature = '' } = block
  if (type === 'tool_use') return { ...content, calls: [...content.calls, { id, name, input }] }
  if (type === 'thinking')
    return {
      ...content,
      thinking: content.thinking + thinking,
      signed: [...content.signed, { thinking, signature }],
    }
  return { ...content, text: content.text + text }
}

function withDelta(content: Content, delta: NonNullable<MessagesEvent['delta']>): Content {
  const { type, text = '', thinking = '', signature = '', partial_json: json = '' } = delta
  if (type === 'text_delta') return { ...content, text: content.text + text }
  if (type === 'input_json_delta') {
    const last = content.calls.at(-1)
    if (!last) return content
    return { ...content, calls: [...content.calls.slice(0, -1), { ...last, input: last.input + json }] }
  }
  if (type !== 'thinking_delta' && type !== 'signature_delta') return content
  const open = content.signed.at(-1) ?? { thinking: '', signature: '' }
  const grown = { thinking: open.thinking + thinking, signature: open.signature + signature }
  return {
    ...content,
    thinking: content.thinking + thinking,
    signed: [...content.signed.slice(0, -1), grown],
  }
}
