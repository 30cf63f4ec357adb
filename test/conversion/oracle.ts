/**
 * The content of a response, parsed with JSON.parse only, without code of the product: the reference for
 * conversions.
 */
export interface Content {
  /** What was said, refusals and the provider's words about them included. */
  readonly text: string
  readonly thoughts: string
  /** Names, and inputs as JSON values; a text that is not JSON stays a string. */
  readonly calls: readonly { readonly name: string; readonly input: unknown }[]
  /**
   * All prompt tokens, how many of them were cached, and generated tokens; undefined where none are reported.
   */
  readonly usage: { readonly prompt: number; readonly cached: number; readonly output: number } | undefined
}

type Json = Record<string, any> // oxlint-disable-line typescript/no-explicit-any -- JSON of a provider

interface Call {
  readonly key: string
  name: string
  input: string
}

/** The data of a stream's frames, as JSON. */
function dataOf(stream: string): Json[] {
  return stream
    .replaceAll('\r\n', '\n')
    .split('\n\n')
    .flatMap((frame) => frame.split('\n').filter((line) => line.startsWith('data:')))
    .map((line) => line.slice('data:'.length).trim())
    .filter((data) => data.startsWith('{'))
    .map((data) => JSON.parse(data) as Json)
}

const finished = (calls: readonly Call[]): Content['calls'] =>
  calls.map(({ name, input }) => ({ name, input: parsed(input) }))

function parsed(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Reads a chat stream; where there are several choices, the first. */
export function chatStreamSays(stream: string): Content {
  let text = ''
  let thoughts = ''
  let usage: Json | undefined
  const calls: Call[] = []
  for (const chunk of dataOf(stream)) {
    usage = chunk['usage'] ?? chunk['x_groq']?.usage ?? chunk['choices']?.[0]?.usage ?? usage
    const choice = (chunk['choices'] ?? []).find((one: Json) => (one['index'] ?? 0) === 0)
    const delta = choice?.delta ?? {}
    text += contentText(delta.content) + (delta.refusal ?? '')
    thoughts += thoughtsIn(delta)
    const legacy = delta.function_call ? [{ index: 'legacy', function: delta.function_call }] : []
    for (const [at, call] of [...(delta.tool_calls ?? []), ...legacy].entries()) {
      const key = String(call.index ?? call.id ?? at)
      let known = calls.findLast((one) => one.key === key)
      if (!known || (call.id && call.function?.name && known.input !== '' && isWhole(known.input)))
        calls.push((known = { key, name: '', input: '' }))
      known.name ||= call.function?.name ?? ''
      known.input += call.function?.arguments ?? ''
    }
  }
  return { text, thoughts, calls: finished(calls), usage: chatUsage(usage) }
}

function isWhole(input: string): boolean {
  return typeof parsed(input) === 'object'
}

/** Reads a whole chat reply. */
export function chatReplySays(json: string): Content {
  const reply = JSON.parse(json) as Json
  const message = reply['choices'].find((one: Json) => (one['index'] ?? 0) === 0)?.message ?? {}
  return {
    text: contentText(message.content) + (message.refusal ?? '') + (message.audio?.transcript ?? ''),
    thoughts: thoughtsIn(message),
    calls: (message.tool_calls ?? [{ function: message.function_call }])
      .map((call: Json) => call['function'])
      .filter((call: Json | undefined) => call?.['name'])
      .map((call: Json) => ({ name: call['name'], input: parsed(call['arguments']) })),
    usage: chatUsage(reply['usage']),
  }
}

function contentText(content: unknown): string {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : ''
  return content.map((part: Json) => part['text'] ?? '').join('')
}

function thoughtsIn(message: Json): string {
  const named = message['reasoning_content'] || message['reasoning']
  if (typeof named === 'string' && named !== '') return named
  if (Array.isArray(message['reasoning_details']))
    return message['reasoning_details'].map((detail: Json) => detail['text'] ?? '').join('')
  if (!Array.isArray(message['content'])) return ''
  return message['content']
    .flatMap((part: Json) =>
      Array.isArray(part['thinking']) ? part['thinking'] : [{ text: part['thinking'] }],
    )
    .map((part: Json) => part['text'] ?? '')
    .join('')
}

/**
 * Usage of a chat reply. What the total has beyond prompt and completion is what a provider counts
 * separately: audio in the prompt, or else reasoning in the answer. Cached tokens are at most the prompt.
 */
function chatUsage(usage: Json | undefined | null): Content['usage'] {
  if (typeof usage?.['prompt_tokens'] !== 'number') return undefined
  const { prompt_tokens: prompt, completion_tokens: output, total_tokens: total } = usage
  const { cached_tokens: said = 0, audio_tokens: audio = 0 } = usage['prompt_tokens_details'] ?? {}
  const cached = Math.min(said, prompt)
  const rest = total - prompt - output
  return rest > 0 && rest === audio
    ? { prompt: prompt + rest, cached, output }
    : { prompt, cached, output: output + Math.max(rest, 0) }
}

/** Reads a messages stream. `proofs` replaces each signature. */
export function messagesStreamSays(stream: string, proofs = ''): Content {
  let text = ''
  let thoughts = ''
  const counts: Json = {}
  const calls: Call[] = []
  for (const event of dataOf(stream)) {
    const block = event['content_block']
    const delta = event['delta'] ?? {}
    // A message that is already finished may be complete in its first event.
    const whole = (event['message']?.content ?? []) as Json[]
    for (const { type, name, input } of whole)
      if (type === 'tool_use') calls.push({ key: '', name, input: JSON.stringify(input) })
    if (block?.type === 'text') text += block.text
    if (block?.type === 'tool_use')
      calls.push({
        key: String(event['index']),
        name: block.name,
        input: Object.keys(block.input).length > 0 ? JSON.stringify(block.input) : '',
      })
    if (delta.type === 'text_delta') text += delta.text
    text += delta.stop_details?.explanation ?? ''
    if (delta.type === 'thinking_delta') thoughts += delta.thinking
    if (delta.type === 'signature_delta') thoughts += proofs
    if (delta.type === 'input_json_delta') {
      const call = calls.findLast(({ key }) => key === String(event['index']))
      if (call) call.input += delta.partial_json
    }
    Object.assign(counts, event['message']?.usage, event['usage'])
  }
  return { text, thoughts, calls: finished(calls), usage: messagesUsage(counts) }
}

/** Reads a whole messages reply. */
export function messagesReplySays(json: string, proofs = ''): Content {
  const reply = JSON.parse(json) as Json
  const blocks = reply['content'] as Json[]
  return {
    text:
      blocks.map((block) => (block['type'] === 'text' ? block['text'] : '')).join('') +
      (reply['stop_details']?.explanation ?? ''),
    thoughts: blocks
      .map((block) =>
        block['type'] === 'thinking' ? block['thinking'] + (block['signature'] ? proofs : '') : '',
      )
      .join(''),
    calls: blocks
      .filter((block) => block['type'] === 'tool_use')
      .map((block) => ({ name: block['name'], input: block['input'] })),
    usage: messagesUsage(reply['usage']),
  }
}

function messagesUsage(usage: Json): Content['usage'] {
  if (typeof usage['input_tokens'] !== 'number') return undefined
  // The sums omit the tokens for summarizing a long conversation.
  const compactions = ((usage['iterations'] ?? []) as Json[]).filter(({ type }) => type === 'compaction')
  const sum = (name: string): number =>
    [usage, ...compactions].reduce((total, counts) => total + (counts[name] ?? 0), 0)
  const cached = sum('cache_read_input_tokens')
  const prompt = sum('input_tokens') + cached + sum('cache_creation_input_tokens')
  return { prompt, cached, output: sum('output_tokens') }
}

export const STREAM_SAYS = { chat: chatStreamSays, messages: messagesStreamSays } as const
export const REPLY_SAYS = { chat: chatReplySays, messages: messagesReplySays } as const
