import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'

/** A model's answer as seen by a client that only knows texts and tool calls. */
export interface Answer {
  readonly text: string
  readonly calls: readonly string[]
}

/** A turn of the user: a question, or the results of tool calls. */
export type Said = { readonly asked: string } | { readonly results: readonly string[] }

/** A client in one conversation that sends back texts and tool calls, and drops everything else. */
export type DroppingClient = (said: Said) => Promise<Answer>

/** The model that a client calls, and whether it streams. */
export interface ClientOptions {
  readonly model: string
  readonly stream: boolean
}

const SCHEMA = { type: 'object' as const, properties: { at: { type: 'string' } } }
const MAX_TOKENS = 4_000

/** A client of chat completions; `urlOf` is called for each request. */
export function chatClient(urlOf: () => string, { model, stream }: ClientOptions): DroppingClient {
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'system', content: 'Be short.' }]
  return async (said) => {
    const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${urlOf()}/v1`, maxRetries: 0 })
    if ('asked' in said) messages.push({ role: 'user', content: said.asked })
    else for (const id of said.results) messages.push({ role: 'tool', tool_call_id: id, content: 'sunny' })
    const body = {
      model,
      messages,
      max_tokens: MAX_TOKENS,
      reasoning_effort: 'low' as const,
      tools: [{ type: 'function' as const, function: { name: 'look', parameters: SCHEMA } }],
    }
    const completion = stream
      ? await client.chat.completions.stream(body).finalChatCompletion()
      : await client.chat.completions.create(body)
    const { content, tool_calls: given } = completion.choices[0]!.message
    const calls = (given ?? []).flatMap((call) => (call.type === 'function' ? [call] : []))
    messages.push({
      role: 'assistant',
      content,
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ id, function: { name, arguments: input } }) => ({
          id,
          type: 'function' as const,
          function: { name, arguments: input },
        })),
      }),
    })
    return { text: content ?? '', calls: calls.map(({ id }) => id) }
  }
}

/** A client of messages. */
export function messagesClient(urlOf: () => string, { model, stream }: ClientOptions): DroppingClient {
  const client = new Anthropic({ apiKey: 'sk-ann', baseURL: urlOf(), maxRetries: 0 })
  const messages: Anthropic.MessageParam[] = []
  return async (said) => {
    messages.push({
      role: 'user',
      content:
        'asked' in said
          ? said.asked
          : said.results.map((id) => ({ type: 'tool_result' as const, tool_use_id: id, content: 'sunny' })),
    })
    const body = {
      model,
      messages,
      system: 'Be short.',
      max_tokens: MAX_TOKENS,
      thinking: { type: 'enabled' as const, budget_tokens: 1_280 },
      tools: [{ name: 'look', input_schema: SCHEMA }],
    }
    const message = stream
      ? await client.messages.stream(body).finalMessage()
      : await client.messages.create(body)
    const content = message.content.flatMap((block): Anthropic.ContentBlockParam[] => {
      if (block.type === 'text') return [{ type: 'text', text: block.text }]
      if (block.type !== 'tool_use') return []
      return [{ type: 'tool_use', id: block.id, name: block.name, input: block.input }]
    })
    messages.push({ role: 'assistant', content })
    return {
      text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
      calls: content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : [])),
    }
  }
}

/** A client of responses, none of which are stored. */
export function responsesClient(urlOf: () => string, { model, stream }: ClientOptions): DroppingClient {
  const client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${urlOf()}/v1`, maxRetries: 0 })
  const input: OpenAI.Responses.ResponseInputItem[] = []
  return async (said) => {
    if ('asked' in said) input.push({ role: 'user', content: said.asked })
    else
      for (const id of said.results)
        input.push({ type: 'function_call_output', call_id: id, output: 'sunny' })
    const body = {
      model,
      input,
      instructions: 'Be short.',
      max_output_tokens: MAX_TOKENS,
      reasoning: { effort: 'low' as const },
      store: false,
      tools: [{ type: 'function' as const, name: 'look', parameters: SCHEMA, strict: false }],
    }
    const response = stream
      ? await client.responses.stream(body).finalResponse()
      : await client.responses.create(body)
    const calls: string[] = []
    for (const item of response.output) {
      if (item.type === 'message')
        input.push({
          role: 'assistant',
          content: item.content.map((part) => (part.type === 'output_text' ? part.text : '')).join(''),
        })
      if (item.type !== 'function_call') continue
      calls.push(item.call_id)
      input.push({ type: 'function_call', call_id: item.call_id, name: item.name, arguments: item.arguments })
    }
    return { text: response.output_text, calls }
  }
}

/** Asks `questions` questions, each with all its rounds of tool calls; resolves to the number of calls. */
export async function converse(client: DroppingClient, questions: number): Promise<number> {
  let calls = 0
  for (let question = 1; question <= questions; question++) {
    let answer = await client({ asked: `Question ${question}: what is it like there?` })
    while (answer.calls.length > 0) {
      calls += answer.calls.length
      answer = await client({ results: answer.calls })
    }
  }
  return calls
}
