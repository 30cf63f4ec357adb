import type { Answer, Exchange, Question, ModelAndProtocol } from './answer.ts'
import { geminiBody } from './gemini-body.ts'
import { embeddingsBody, imagesBody, speechBody } from './media-body.ts'
import { responsesBody } from './responses-body.ts'
import {
  type AnsweredQuestion,
  THINKING_BUDGETS,
  type CallSettings,
  withoutUndefined,
  parseObjectOrEmpty,
  type PlaygroundRequest,
} from './playground-request.ts'

/** Maximum number of output tokens if the user typed none; the messages protocol requires a number. */
const USUAL_MAX_TOKENS = 4096

/** The body of a request: settings, the conversation so far with that model, and a new question. */
export function requestBody(
  target: ModelAndProtocol,
  settings: CallSettings,
  before: readonly Exchange[],
  question: Question,
): object {
  const request = {
    ...settings,
    model: target.model,
    earlier: questionsForTarget(target, before, question),
    question,
  }
  return BODIES[target.protocol](request)
}

const BODIES = {
  chat: chatBody,
  messages: messagesBody,
  responses: responsesBody,
  gemini: geminiBody,
  images: imagesBody,
  speech: speechBody,
  embeddings: embeddingsBody,
} as const

/**
 * The conversation from the view of one model: its own answers, or those of another model to questions that
 * it did not get. Tool results are only included for the model that made the calls, and tool calls without
 * results are left out.
 */
function questionsForTarget(
  target: ModelAndProtocol,
  before: readonly Exchange[],
  question: Question,
): readonly AnsweredQuestion[] {
  const earlier = before.flatMap((exchange) => {
    const own = exchange.answers.find(
      ({ model, protocol }) => model === target.model && protocol === target.protocol,
    )
    const answer = own ?? (exchange.question.results.length > 0 ? undefined : exchange.answers[0])
    return answer ? [{ question: exchange.question, answer }] : []
  })
  return earlier
    .map((one, place) => {
      const { results } = earlier[place + 1]?.question ?? question
      return results.length > 0 ? one : { ...one, answer: withoutCalls(one.answer) }
    })
    .filter(({ answer: { content } }) => content.text !== '' || content.calls.length > 0)
}

function withoutCalls(answer: Answer): Answer {
  return { ...answer, content: { ...answer.content, calls: [] } }
}

function chatBody(request: PlaygroundRequest): object {
  const { model, system, thinking, temperature, topP, maxTokens, tools, stream, earlier, question } = request
  return {
    model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      ...earlier.flatMap((one) => [...chatQuestion(one.question), chatAnswer(one.answer)]),
      ...chatQuestion(question),
    ],
    ...withoutUndefined({ temperature, top_p: topP, max_tokens: maxTokens }),
    ...(thinking !== 'off' && { reasoning_effort: thinking }),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, schema }) => ({
        type: 'function',
        function: { name, ...withoutUndefined({ description }), parameters: schema },
      })),
    }),
    ...(stream && { stream: true, stream_options: { include_usage: true } }),
  }
}

function chatQuestion({ text, images, results }: Question): readonly object[] {
  const toolMessages = results.map(({ id, text: content }) => ({ role: 'tool', tool_call_id: id, content }))
  if (text === '' && images.length === 0) return toolMessages
  const content =
    images.length === 0
      ? text
      : [{ type: 'text', text }, ...images.map((url) => ({ type: 'image_url', image_url: { url } }))]
  return [...toolMessages, { role: 'user', content }]
}

function chatAnswer({ content: { text, calls } }: Answer): object {
  if (calls.length === 0) return { role: 'assistant', content: text }
  return {
    role: 'assistant',
    content: text === '' ? null : text,
    tool_calls: calls.map(({ id, name, input }) => ({
      id,
      type: 'function',
      function: { name, arguments: input || '{}' },
    })),
  }
}

function messagesBody(request: PlaygroundRequest): object {
  const { model, system, thinking, temperature, topP, maxTokens, tools, stream, earlier, question } = request
  const budget = thinking === 'off' ? 0 : THINKING_BUDGETS[thinking]
  return {
    model,
    max_tokens: budget + (maxTokens ?? USUAL_MAX_TOKENS),
    ...(system !== '' && { system }),
    messages: [
      ...earlier.flatMap((one) => [messagesQuestion(one.question), messagesAnswer(one.answer)]),
      messagesQuestion(question),
    ],
    ...withoutUndefined({ temperature, top_p: topP }),
    ...(budget > 0 && { thinking: { type: 'enabled', budget_tokens: budget } }),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, schema }) => ({
        name,
        ...withoutUndefined({ description }),
        input_schema: schema,
      })),
    }),
    ...(stream && { stream: true }),
  }
}

function messagesQuestion({ text, images, results }: Question): object {
  if (images.length === 0 && results.length === 0) return { role: 'user', content: text }
  return {
    role: 'user',
    content: [
      ...results.map(({ id, text: content }) => ({ type: 'tool_result', tool_use_id: id, content })),
      ...images.map(imageBlock),
      ...(text === '' ? [] : [{ type: 'text', text }]),
    ],
  }
}

/** The content block for an image given as a data URL. */
function imageBlock(url: string): object {
  const [, type = '', data = ''] = /^data:([^;,]*);base64,(.*)$/s.exec(url) ?? []
  return { type: 'image', source: { type: 'base64', media_type: type, data } }
}

function messagesAnswer({ protocol, content: { text, calls, signed } }: Answer): object {
  if (calls.length === 0) return { role: 'assistant', content: text }
  // Only the messages protocol has signatures, and it refuses thinking blocks without one.
  const thoughts = protocol === 'messages' ? signed.filter(({ signature }) => signature !== '') : []
  return {
    role: 'assistant',
    content: [
      ...thoughts.map((thought) => ({ type: 'thinking', ...thought })),
      ...(text === '' ? [] : [{ type: 'text', text }]),
      ...calls.map(({ id, name, input }) => ({
        type: 'tool_use',
        id,
        name,
        input: parseObjectOrEmpty(input),
      })),
    ],
  }
}
