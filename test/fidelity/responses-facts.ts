import {
  type Facts,
  finishAfter,
  type Finish,
  inputOf,
  type Json,
  type ToolCall,
  type Usage,
} from './facts.ts'

/** Events that end a stream. */
const LAST = new Set(['response.completed', 'response.incomplete', 'response.failed'])
/** Deltas, and the field of an unfinished item that they add to. */
const DELTAS: Readonly<Record<string, 'text' | 'refusal' | 'reasoning' | 'input'>> = {
  'response.output_text.delta': 'text',
  'response.refusal.delta': 'refusal',
  'response.reasoning_summary_text.delta': 'reasoning',
  'response.reasoning_text.delta': 'reasoning',
  'response.function_call_arguments.delta': 'input',
  'response.custom_tool_call_input.delta': 'input',
}

/** The content of an item. */
interface Said {
  text: string
  refusal: string
  reasoning: string
  call: ToolCall | undefined
}

/** An item that has begun, with its texts so far; `part` is the part of the reasoning that they belong to. */
interface Begun {
  readonly item: Json
  text: string
  refusal: string
  reasoning: string
  input: string
  part: unknown
}

/** Reads a response of the responses API: whole, or the events of a stream, whose items may be unfinished. */
export function responsesFacts(events: readonly Json[], whole: boolean): Facts {
  const last = whole ? events[0] : events.findLast(({ type }) => LAST.has(type))?.['response']
  const said = whole ? ((last?.['output'] ?? []) as Json[]).map(itemSays) : streamedItems(events)
  const of = (name: 'text' | 'refusal' | 'reasoning'): string => said.map((item) => item[name]).join('')
  const calls = said.flatMap(({ call }) => call ?? [])
  return {
    text: of('text'),
    reasoning: of('reasoning'),
    refusal: of('refusal'),
    explanation: '',
    calls,
    finish: finishAfter(calls, finishOf(last)),
    usage: usageOf(last?.['usage']),
    ends: whole ? 1 : events.filter(({ type }) => LAST.has(type) && type !== 'response.failed').length,
    errors: events.filter(({ type }) => type === 'error' || type === 'response.failed').length,
  }
}

function finishOf(response: Json | undefined): Finish | undefined {
  if (response?.['status'] === 'completed') return 'stop'
  if (response?.['status'] !== 'incomplete') return undefined
  return response['incomplete_details']?.reason === 'content_filter' ? 'filter' : 'length'
}

function streamedItems(events: readonly Json[]): Said[] {
  const items = new Map<number, Said | Begun>()
  for (const event of events) {
    const at = event['output_index'] as number
    const begun = items.get(at)
    const name = DELTAS[event['type']]
    if (event['type'] === 'response.output_item.added')
      items.set(at, { item: event['item'], text: '', refusal: '', reasoning: '', input: '', part: undefined })
    else if (event['type'] === 'response.output_item.done') items.set(at, itemSays(event['item']))
    else if (name && begun && 'item' in begun) {
      const part = event['summary_index'] ?? event['content_index']
      if (name === 'reasoning' && begun.reasoning !== '' && begun.part !== part) begun.reasoning += '\n\n'
      begun.part = part
      begun[name] += event['delta']
      if (name === 'refusal') begun.text += event['delta']
    }
  }
  return [...items.entries()]
    .sort(([one], [other]) => one - other)
    .map(([, item]) => ('item' in item ? unfinished(item) : item))
}

function unfinished({ item, text, refusal, reasoning, input }: Begun): Said {
  const call = callOf({ ...item, ...(input !== '' && { arguments: input, input }) })
  return { text, refusal, reasoning, call }
}

function itemSays(item: Json): Said {
  const parts = (item['content'] ?? []) as Json[]
  const isMessage = item['type'] === 'message'
  const isReasoning = item['type'] === 'reasoning'
  const summary = (item['summary'] ?? []) as Json[]
  const join = (list: readonly Json[]): string =>
    list.map((part) => part['text'] ?? part['refusal'] ?? '').join('')
  return {
    text: isMessage ? join(parts) : '',
    refusal: isMessage ? parts.map((part) => part['refusal'] ?? '').join('') : '',
    reasoning: !isReasoning
      ? ''
      : summary.length > 0
        ? summary.map((part) => part['text']).join('\n\n')
        : join(parts),
    call: callOf(item),
  }
}

function callOf(item: Json): ToolCall | undefined {
  const { call_id: id } = item
  switch (item['type']) {
    case 'function_call':
      return { id, name: item['name'], input: inputOf(item['arguments']) }
    case 'custom_tool_call':
      return { id, name: item['name'], input: { input: item['input'] } }
    case 'local_shell_call':
      return { id, name: 'local_shell', input: item['action'] }
    case 'apply_patch_call':
      return { id, name: 'apply_patch', input: item['operation'] }
    default:
      return undefined
  }
}

function usageOf(usage: Json | undefined | null): Usage | undefined {
  if (typeof usage?.['input_tokens'] !== 'number') return undefined
  const cached = usage['input_tokens_details']?.cached_tokens ?? 0
  return { prompt: usage['input_tokens'], cached, output: usage['output_tokens'] }
}
