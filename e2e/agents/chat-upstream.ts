import {
  bearerToken,
  type Frame,
  bodyOfPost,
  Refusal,
  type Reply,
  type ReplyTimeAndIds,
  type Upstream,
} from '@sluice/simulator'
import { type Fields, asFields, asList, asString } from '@sluice/simulator/fields'
import { nextTurn, pieces, type ModelInput, tokensOf } from './model.ts'

/** The model behind chat completions, as strict about the order of messages as providers are. */
export function chatUpstream(models: readonly string[]): Upstream {
  return {
    bodyIfServed: bodyOfPost('/chat/completions'),
    models,
    keyOf: bearerToken,
    reply,
    refuse: ({ message }) => ({
      error: { message, type: 'invalid_request_error', param: null, code: null },
    }),
  }
}

function reply(body: Fields, model: string, stamp: ReplyTimeAndIds): Reply {
  const { thinking, text, calls } = nextTurn(modelInput(body))
  const prompt = tokensOf(JSON.stringify(body))
  const completion = tokensOf(thinking + text + JSON.stringify(calls))
  const usage = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: Math.floor(prompt / 256) * 128 },
    completion_tokens_details: { reasoning_tokens: tokensOf(thinking) },
  }
  const finish = calls.length > 0 ? 'tool_calls' : 'stop'
  const toolCalls = calls.map(({ name, input }) => ({
    id: stamp.id('call_'),
    type: 'function',
    function: { name, arguments: input },
  }))
  const head = { id: stamp.id('chatcmpl-'), created: stamp.created, model }
  if (body.stream !== true) {
    const message = {
      role: 'assistant',
      content: text,
      ...(thinking !== '' && { reasoning_content: thinking }),
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    }
    const choices = [{ index: 0, message, logprobs: null, finish_reason: finish }]
    return { kind: 'whole', body: { ...head, object: 'chat.completion', choices, usage }, tokens: 0 }
  }
  const frame = (choices: readonly unknown[], more: object = {}): Frame => ({
    text: `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`,
    tokens: 1,
  })
  const delta = (said: object, reason: string | null = null): Frame =>
    frame([{ index: 0, delta: said, logprobs: null, finish_reason: reason }])
  const frames = [
    delta({ role: 'assistant', content: '' }),
    ...pieces(thinking).map((piece) => delta({ reasoning_content: piece })),
    ...pieces(text).map((piece) => delta({ content: piece })),
    ...toolCalls.flatMap(({ function: { name, arguments: input }, ...call }, index) => [
      delta({ tool_calls: [{ index, ...call, function: { name, arguments: '' } }] }),
      ...pieces(input).map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
    delta({}, finish),
    ...(asFields(body.stream_options).include_usage === true ? [frame([], { usage })] : []),
    { text: 'data: [DONE]\n\n', tokens: 0 },
  ]
  return { kind: 'stream', frames }
}

const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool'])

function modelInput(body: Fields): ModelInput {
  const messages = asList(body.messages).map(asFields)
  const answers: Fields[] = []
  let awaited = new Set<string>()
  for (const message of messages) {
    if (!ROLES.has(asString(message.role)))
      throw new Refusal('malformed', `unknown role ${asString(message.role)}`)
    if (message.role === 'tool') {
      if (!awaited.delete(asString(message.tool_call_id))) {
        throw new Refusal('malformed', "messages with role 'tool' must follow the 'tool_calls' they answer")
      }
      answers.push(message)
    } else if (awaited.size > 0) throw new Refusal('malformed', "each of 'tool_calls' must be answered")
    if (message.role === 'assistant') {
      const calls = asList(message.tool_calls).map(asFields)
      awaited = new Set(calls.map(({ id }) => asString(id)))
      for (const call of calls) JSON.parse(asString(asFields(call.function).arguments))
    }
  }
  if (awaited.size > 0) throw new Refusal('malformed', "each of 'tool_calls' must be answered")
  return {
    user: messages
      .filter(({ role }) => role === 'user')
      .map(({ content }) => textOf(content))
      .join('\n'),
    results: answers.map(({ content }) => textOf(content)),
    tools: asList(body.tools)
      .map((tool) => asFields(asFields(tool).function))
      .map(({ name, parameters }) => ({ name: asString(name), schema: asFields(parameters) })),
  }
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return asList(content)
    .map((part) => asString(asFields(part).text))
    .join('\n')
}
