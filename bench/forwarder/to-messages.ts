import type { Converter } from './stream-answer.ts'

const TEXT = '"delta":{"content":"'
const PREFIX =
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"'
const SUFFIX = '"}}\n\n'
const START =
  'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"bench","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}}\n\n' +
  'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'

/**
 * Converts chunks of chat to events of the messages dialect by cutting out the text, as cheaply as possible.
 */
export class ToMessages implements Converter {
  #rest = ''

  push(text: string): string {
    const all = this.#rest + text
    let out = ''
    let from = 0
    for (let end = all.indexOf('\n\n'); end !== -1; end = all.indexOf('\n\n', from)) {
      const at = all.indexOf(TEXT, from)
      if (at !== -1 && at < end) {
        const start = at + TEXT.length
        out += PREFIX + all.slice(start, all.indexOf('"},"', start)) + SUFFIX
      } else out += other(all.slice(from, end))
      from = end + 2
    }
    this.#rest = all.slice(from)
    return out
  }
}

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly role?: string } }[]
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number }
}

function other(frame: string): string {
  const data = frame.slice('data: '.length)
  if (data === '[DONE]') return 'event: message_stop\ndata: {"type":"message_stop"}\n\n'
  const { choices, usage } = JSON.parse(data) as Chunk
  if (choices[0]?.delta.role) return START
  if (!usage) return 'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
  return `event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":${usage.prompt_tokens},"output_tokens":${usage.completion_tokens}}}\n\n`
}
