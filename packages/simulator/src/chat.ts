import { type ModelOutput, generateOutput } from './model-output.ts'
import { chatBlocks, chatPrompt } from './chat-request.ts'
import {
  requestedChoices,
  FINISH_REASON,
  interleaveFrames,
  maxTokensOfOutputs,
  countCallUsage,
} from './choices.ts'
import { COMPLETIONS_PATH, completionsReply } from './completions.ts'
import { type Fields, asFields } from './fields.ts'
import { MODERATIONS_PATH, moderationsReply } from './moderations.ts'
import type { PromptCache } from './prompt-cache.ts'
import { type AccountCache, useOpenAiCache } from './openai-cache.ts'
import type { Refusal, RefusalKind } from './refusal.ts'
import { openAiTier } from './service-tier.ts'
import {
  bearerToken,
  type Frame,
  bodyOfPost,
  type Reply,
  type ReplyTimeAndIds,
  type Upstream,
} from './upstream.ts'

/** Fields that all chunks of a stream have in common. */
type Head = Readonly<
  Record<'id' | 'object' | 'model' | 'system_fingerprint', string> & {
    created: number
    service_tier: string | undefined
  }
>

/** Creates a simulated provider of chat completions, and of completions of a prompt and moderations. */
export function chatUpstream(models: readonly string[], cache: PromptCache): Upstream {
  return {
    faults: 'chat',
    bodyIfServed: bodyOfPost('/chat/completions', COMPLETIONS_PATH, MODERATIONS_PATH),
    models,
    keyOf: bearerToken,
    reply: (body, model, stamp, { path, account }) =>
      (OTHER_REPLIES.get(path) ?? reply)(body, model, stamp, { cache, account }),
    refuse,
  }
}

const OTHER_REPLIES: ReadonlyMap<string, typeof reply> = new Map([
  [COMPLETIONS_PATH, completionsReply],
  [MODERATIONS_PATH, moderationsReply],
])

function reply(body: Fields, model: string, stamp: ReplyTimeAndIds, { cache, account }: AccountCache): Reply {
  const prompt = chatPrompt(body, model)
  const outputs = Array.from({ length: requestedChoices(body) }, (_, index) => generateOutput(prompt, index))
  const { transcript } = prompt
  const used = useOpenAiCache(cache, { account, model, body, transcript, blocks: chatBlocks(body) })
  const usage = countCallUsage(transcript, used, outputs, body)
  const head = (object: string): Head => ({
    id: stamp.id('chatcmpl-'),
    object,
    created: stamp.created,
    model,
    system_fingerprint: 'fp_simulated',
    service_tier: openAiTier(body),
  })
  if (body.stream === true) {
    const includesUsage = asFields(body.stream_options).include_usage === true
    return {
      kind: 'stream',
      frames: frames(head('chat.completion.chunk'), outputs, stamp, includesUsage ? usage : undefined),
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
    tokens: maxTokensOfOutputs(outputs),
  }
}

function message({ thinking, text, calls }: ModelOutput, stamp: ReplyTimeAndIds): unknown {
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

/**
 * Renders the chunks of a stream. If usage was requested, every chunk has the field `usage`: null, except in
 * the last chunk, which has no choices.
 */
function frames(
  head: Head,
  outputs: readonly ModelOutput[],
  stamp: ReplyTimeAndIds,
  usage: unknown,
): Frame[] {
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
  return [...interleaveFrames(streams), ...(usage === undefined ? [] : [chunk([], 0, usage)]), done]
}

interface Delta {
  readonly delta: unknown
  readonly finish: string | null
  readonly tokens: number
}

function deltas({ thinking, text, calls, stopCause }: ModelOutput, stamp: ReplyTimeAndIds): Delta[] {
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

const CODE: Partial<Record<RefusalKind, string>> = {
  missing_key: 'invalid_api_key',
  unknown_model: 'model_not_found',
  unknown_path: 'unknown_url',
}

function refuse({ kind, message }: Refusal): unknown {
  const text = kind === 'unknown_model' ? `The model \`${message}\` does not exist` : message
  return { error: { message: text, type: 'invalid_request_error', param: null, code: CODE[kind] ?? null } }
}
