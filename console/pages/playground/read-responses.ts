import type { Content } from './answer.ts'

interface Item {
  readonly type?: string
  readonly call_id?: string
  readonly name?: string
  readonly arguments?: string
  readonly content?: readonly { readonly type?: string; readonly text?: string }[]
  readonly summary?: readonly { readonly text?: string }[]
}

interface ResponsesEvent {
  readonly type?: string
  readonly delta?: string
  readonly item?: Item
  readonly output?: readonly Item[]
  readonly error?: { readonly message?: string } | null
  readonly message?: string
  readonly response?: { readonly error?: { readonly message?: string } | null }
}

/** Adds to the content what an event of a stream, or a whole response, in the responses protocol contains. */
export function readResponses(content: Content, reply: unknown): Content {
  const { type, delta = '', item, output, error, message, response } = reply as ResponsesEvent
  const failure = error?.message ?? response?.error?.message ?? (type === 'error' ? message : undefined)
  if (failure !== undefined) return { ...content, error: failure }
  if (type === 'response.output_text.delta') return { ...content, text: content.text + delta }
  if (type === 'response.reasoning_summary_text.delta' || type === 'response.reasoning_text.delta')
    return { ...content, thinking: content.thinking + delta }
  // At the end of an item, only a tool call is added: the text of other items has arrived in earlier events.
  if (type === 'response.output_item.done')
    return item?.type === 'function_call' ? withItem(content, item) : content
  return (output ?? []).reduce(withItem, content)
}

function withItem(content: Content, item: Item): Content {
  const { type, call_id: id = '', name = '', arguments: input = '' } = item
  if (type === 'function_call') return { ...content, calls: [...content.calls, { id, name, input }] }
  const textOf = (parts: Item['content']): string => (parts ?? []).map(({ text = '' }) => text).join('')
  if (type === 'reasoning')
    return { ...content, thinking: content.thinking + textOf(item.summary) + textOf(item.content) }
  return { ...content, text: content.text + textOf(item.content) }
}
