import { DONE, type Facts, finishAfter, type Finish, inputOf, type Json, type Usage } from './facts.ts'

const FINISHES: Readonly<Record<string, Finish>> = {
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  insufficient_system_resource: 'length',
  tool_calls: 'tools',
  function_call: 'tools',
  content_filter: 'filter',
}

interface Pieces {
  readonly key: string
  id: string | undefined
  name: string
  input: string
}

/**
 * Reads the first choice of a chat response: a completion, or the chunks of a stream. A call without a name
 * is ignored, because some servers send empty ones. A response has ended when all of its choices have.
 */
export function chatFacts(events: readonly Json[], whole: boolean): Facts {
  let text = ''
  let reasoning = ''
  let refusal = ''
  let finish: Finish | undefined
  let usage: Json | undefined
  const calls: Pieces[] = []
  const begun = new Set<number>()
  const ended = new Set<number>()
  for (const event of events) {
    usage = event['usage'] ?? event['x_groq']?.usage ?? event['choices']?.[0]?.usage ?? usage
    for (const { index = 0, finish_reason: reason } of event['choices'] ?? []) {
      begun.add(index)
      if (reason) ended.add(index)
    }
    const choice = (event['choices'] ?? []).find((one: Json) => (one['index'] ?? 0) === 0)
    if (!choice) continue
    const said = (whole ? choice.message : (choice.delta ?? choice.message)) ?? {}
    text += textOf(said.content) + (said.refusal ?? '') + (said.audio?.transcript ?? '')
    refusal += said.refusal ?? ''
    reasoning += reasoningOf(said)
    addCalls(calls, said)
    if (choice.finish_reason) finish = FINISHES[choice.finish_reason] ?? 'stop'
  }
  const named = calls.filter(({ name }) => name !== '')
  return {
    text,
    reasoning,
    refusal,
    explanation: '',
    calls: named.map(({ id, name, input }) => ({ id, name, input: inputOf(input) })),
    finish: whole || ended.size === begun.size ? finishAfter(named, finish) : undefined,
    usage: usageOf(usage),
    ends: whole ? 1 : events.filter((event) => event === DONE).length,
    errors: events.filter((event) => event['error']).length,
  }
}

function addCalls(calls: Pieces[], said: Json): void {
  const legacy = said['function_call'] ? [{ index: 'legacy', function: said['function_call'] }] : []
  for (const [at, call] of [...(said['tool_calls'] ?? []), ...legacy].entries()) {
    const key = String(call.index ?? call.id ?? at)
    let known = calls.findLast((one) => one.key === key)
    // Some servers give every call the number 0.
    const isAnother = known && call.id && call.function?.name && typeof inputOf(known.input) === 'object'
    if (!known || (isAnother && known.input !== ''))
      calls.push((known = { key, id: undefined, name: '', input: '' }))
    known.id ??= call.id || undefined
    known.name ||= call.function?.name ?? call.custom?.name ?? ''
    known.input += call.function?.arguments ?? call.custom?.input ?? ''
  }
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : ''
  return content.map((part: Json) => part['text'] ?? '').join('')
}

/** The reasoning, by any of the names that providers give it. */
function reasoningOf(said: Json): string {
  const named = said['reasoning_content'] || said['reasoning']
  if (typeof named === 'string' && named !== '') return named
  if (Array.isArray(said['reasoning_details']))
    return said['reasoning_details'].map((detail: Json) => detail['text'] ?? '').join('')
  if (!Array.isArray(said['content'])) return ''
  return said['content']
    .flatMap((part: Json) =>
      Array.isArray(part['thinking']) ? part['thinking'] : [{ text: part['thinking'] }],
    )
    .map((part: Json) => part['text'] ?? '')
    .join('')
}

/**
 * Reads usage. What a total has beyond prompt and completion was counted separately: audio of the prompt
 * where its detail is exactly that number, otherwise reasoning.
 */
function usageOf(usage: Json | undefined | null): Usage | undefined {
  if (typeof usage?.['prompt_tokens'] !== 'number') return undefined
  const { prompt_tokens: prompt, completion_tokens: output, total_tokens: total } = usage
  const { cached_tokens: said, audio_tokens: audio } = usage['prompt_tokens_details'] ?? {}
  const cached = Math.min(said ?? 0, prompt)
  const rest = total - prompt - output
  return rest > 0 && rest === audio
    ? { prompt: prompt + rest, cached, output }
    : { prompt, cached, output: output + Math.max(rest, 0) }
}
