import type { Converter } from './stream-answer.ts'

const TEXT = '"text_delta","text":"'
const SUFFIX = '"},"logprobs":null,"finish_reason":null}]}\n\n'
const PREFIX =
  'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"bench","choices":[{"index":0,"delta":{'

/**
 * Converts events of the messages dialect to chunks of chat by cutting out the text, as cheaply as possible.
 */
export class ToChat implements Converter {
  #rest = ''

  push(text: string): string {
    const all = this.#rest + text
    let out = ''
    let from = 0
    for (let end = all.indexOf('\n\n'); end !== -1; end = all.indexOf('\n\n', from)) {
      const at = all.indexOf(TEXT, from)
      // The text between the quotes is the same in both dialects; it is followed by two brackets in the
      // frame.
      if (at !== -1 && at < end) out += `${PREFIX}"content":"${all.slice(at + TEXT.length, end - 3)}${SUFFIX}`
      else out += other(all.slice(from, end))
      from = end + 2
    }
    this.#rest = all.slice(from)
    return out
  }
}

interface Event {
  readonly type: string
  readonly usage?: { readonly output_tokens: number }
}

function other(frame: string): string {
  const event = JSON.parse(frame.slice(frame.indexOf('data: ') + 6)) as Event
  switch (event.type) {
    case 'message_start':
      return `${PREFIX}"role":"assistant","content":"${SUFFIX}`
    case 'message_delta':
      return `${PREFIX}},"logprobs":null,"finish_reason":"stop"}],"usage":{"completion_tokens":${event.usage?.output_tokens}}}\n\n`
    case 'message_stop':
      return 'data: [DONE]\n\n'
    default:
      return ''
  }
}
