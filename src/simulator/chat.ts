import { type ModelOutput, generate, type StopCause } from './model-output.ts'
import { chatPrompt } from './chat-request.ts'
import { type Fields, fields, number } from './fields.ts'
import type { PromptCache } from './prompt-cache.ts'
import { Refusal, type RefusalKind } from './refusal.ts'
import { tokensOf } from './tokens.ts'
import { bearer, type Frame, postTo, type Reply, type Stamp, type Upstream } from './upstream.ts'

const FINISH_REASON: Record<StopCause, string> = {
  done: 'stop',
  stop_text: 'stop',
  length: 'length',
  tools: 'tool_calls',
}

// Count from which cached tokens are reported, in steps of 128.
const MIN_CACHED_TOKENS = 1024

/** Common members of a stream's chunks. */
type Head = Readonly<Record<'id' | 'object' | 'model' | 'system_fingerprint', string> & { created: number }>

/** Creates a simulated provider of chat completions. */
export function chatUpstream(models: readonly string[], cache: PromptCache): Upstream {
  return {
    asked: postTo('/chat/completions'),
    models,
    keyOf: bearer,
    reply: (body, model, stamp) => reply(body, model, stamp, cache),
    refuse,
  }
}

function reply(body: Fields, model: string, stamp: Stamp, cache: PromptCache): Reply {
  const prompt = chatPrompt(body, model)
  const n = number(body.n) ?? 1
  if (!Number.isInteger(n) || n < 1 || n > 128)
    throw new Refusal('malformed', "Invalid 'n': 1 to 128 is expected")
  const outputs = Array.from({ length: n }, (_, index) => generate(prompt, index))
  const usage = usageOf(prompt.transcript, cache.remember(model, prompt.transcript), outputs)
  const head = (object: string): Head => ({
    id: stamp.id('chatcmpl-'),
    object,
    created: stamp.created,
    model,
    system_fingerprint: 'fp_simulated',
  })
  if (body.stream === true) {
    const asked = fields(body.stream_options).include_usage === true
    return {
      kind: 'stream',
      frames: frames(head('chat.completion.chunk'), outputs, stamp, asked ? usage : undefined),
    }
  }
  const choices = outputs.map((one, index) => ({
    index,
    message: message(one, stamp),
    logprobs: null,
    finish_reason: FINISH_REASON[one.stopCause],
  }))
  return {
    kind: 'whole',
    body: { ...head('chat.completion'), choices, usage },
    tokens: Math.max(...outputs.map(({ tokens }) => tokens)),
  }
}

function message({ thinking, text, calls }: ModelOutput, stamp: Stamp): unknown {
  return {
    role: 'assistant',
    content: calls.length > 0 && text.length === 0 ? null : text.join(''),
    ...(thinking.length > 0 && { reasoning_content: thinking.join('') }),
    refusal: null,
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ tool: { name }, input }) => ({
        id: stamp.id('call_'),
        type: 'function',
        function: { name, arguments: input.join('') },
      })),
    }),
  }
}

function usageOf(transcript: string, knownCharacters: number, outputs: readonly ModelOutput[]) {
  const prompt = tokensOf(transcript.length)
  const completion = outputs.reduce((sum, { tokens }) => sum + tokens, 0)
  const known = Math.floor(knownCharacters / 512) * 128
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: known < MIN_CACHED_TOKENS ? 0 : known, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: outputs.reduce((sum, { thinking }) => sum + thinking.length, 0),
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

/**
 * Renders the frames. If usage was requested, every chunk has the member: null except in the last, which has
 * no choices.
 */
function frames(head: Head, outputs: readonly ModelOutput[], stamp: Stamp, usage: unknown): Frame[] {
  const chunk = (choices: readonly unknown[], tokens: number, value: unknown = null): Frame => ({
    text: `data: ${JSON.stringify({ ...head, choices, ...(usage !== undefined && { usage: value }) })}\n\n`,
    tokens,
  })
  const streams = outputs.map((one, index) =>
    deltas(one, stamp).map(({ delta, finish, tokens }) =>
      chunk([{ index, delta, logprobs: null, finish_reason: finish }], index === 0 ? tokens : 0),
    ),
  )
  const done: Frame = { text: 'data: [DONE]\n\n', tokens: 0 }
  return [...interleaved(streams), ...(usage === undefined ? [] : [chunk([], 0, usage)]), done]
}

interface Delta {
  readonly delta: unknown
  readonly finish: string | null
  readonly tokens: number
}

function deltas({ thinking, text, calls, stopCause }: ModelOutput, stamp: Stamp): Delta[] {
  const step = (delta: unknown, tokens: number): Delta => ({ delta, finish: null, tokens })
  return [
    step({ role: 'assistant', content: calls.length > 0 && text.length === 0 ? null : '', refusal: null }, 0),
    ...thinking.map((piece) => step({ reasoning_content: piece }, 1)),
    ...text.map((piece) => step({ content: piece }, 1)),
    ...calls.flatMap(({ tool: { name }, input }, index) => [
      step(
        {
          tool_calls: [{ index, id: stamp.id('call_'), type: 'function', function: { name, arguments: '' } }],
        },
        0,
      ),
      ...input.map((piece) => step({ tool_calls: [{ index, function: { arguments: piece } }] }, 1)),
    ]),
    { delta: {}, finish: FINISH_REASON[stopCause], tokens: 0 },
  ]
}

/** Interleaves the frames of several choices. */
function interleaved(streams: readonly (readonly Frame[])[]): Frame[] {
  const longest = Math.max(...streams.map(({ length }) => length))
  return Array.from({ length: longest }, (_, at) =>
    streams.flatMap((stream) => stream.slice(at, at + 1)),
  ).flat()
}

const CODE: Partial<Record<RefusalKind, string>> = {
  missing_key: 'invalid_api_key',
  unknown_model: 'model_not_found',
  unknown_path: 'unknown_url',
}

function refuse({ kind, message }: Refusal): unknown {
  const text = kind === 'unknown_model' ? `The model \`${message}\` does not exist` : message
  return { error: { message: text, type: 'invalid_request_error', param: null, code: CODE[kind] ?? null } }
}
