import { type Facts, finishAfter, type Finish, inputOf, type Json, type Usage } from './facts.ts'

const FINISHES: Readonly<Record<string, Finish>> = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tools',
  refusal: 'filter',
}

interface Block {
  readonly type: string
  readonly id: string
  readonly name: string
  text: string
  input: string
}

/** Reads a messages answer: a message, or the events of a stream. */
export function messagesFacts(events: readonly Json[], whole: boolean): Facts {
  const blocks: Block[] = []
  const open = new Map<number, Block>()
  const counts: Json = {}
  let finish: Finish | undefined
  let explanation = ''
  for (const event of events) {
    const message = whole ? event : event['message']
    for (const block of message?.content ?? []) blocks.push(blockOf(block))
    if (event['content_block']) {
      const block = blockOf(event['content_block'])
      blocks.push(block)
      open.set(event['index'], block)
    }
    const delta = event['delta'] ?? {}
    const block = open.get(event['index'])
    if (block) {
      block.text += delta.text ?? delta.thinking ?? ''
      block.input += delta.partial_json ?? ''
    }
    const reason = message?.stop_reason ?? delta.stop_reason
    explanation += (message ?? delta).stop_details?.explanation ?? ''
    if (reason) finish = FINISHES[reason] ?? 'stop'
    Object.assign(counts, message?.usage, event['usage'])
  }
  const textOf = (type: string): string =>
    blocks.map((block) => (block.type === type ? block.text : '')).join('')
  const calls = blocks.filter(({ type }) => type === 'tool_use')
  return {
    text: textOf('text'),
    reasoning: textOf('thinking'),
    refusal: '',
    explanation,
    calls: calls.map(({ id, name, input }) => ({ id, name, input: inputOf(input) })),
    finish: finishAfter(calls, finish),
    usage: usageOf(counts),
    ends: whole ? 1 : events.filter(({ type }) => type === 'message_stop').length,
    errors: events.filter(({ type }) => type === 'error').length,
  }
}

function blockOf(block: Json): Block {
  const hasInput = Object.keys(block['input'] ?? {}).length > 0
  return {
    type: block['type'],
    id: block['id'],
    name: block['name'],
    text: block['text'] ?? block['thinking'] ?? '',
    input: hasInput ? JSON.stringify(block['input']) : '',
  }
}

/** The sums omit the tokens that summarized a long conversation. */
function usageOf(usage: Json): Usage | undefined {
  if (typeof usage['input_tokens'] !== 'number') return undefined
  const compactions = ((usage['iterations'] ?? []) as Json[]).filter(({ type }) => type === 'compaction')
  const sum = (name: string): number =>
    [usage, ...compactions].reduce((total, counts) => total + (counts[name] ?? 0), 0)
  const cached = sum('cache_read_input_tokens')
  const prompt = sum('input_tokens') + cached + sum('cache_creation_input_tokens')
  return { prompt, cached, output: sum('output_tokens') }
}
