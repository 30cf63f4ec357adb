import {
  requestedChoices,
  FINISH_REASON,
  interleaveFrames,
  maxTokensOfOutputs,
  countCallUsage,
} from './choices.ts'
import { conversationState } from './conversation.ts'
import { type Fields, asFields, asList, asNumber, asString } from './fields.ts'
import { generateOutput } from './model-output.ts'
import { type AccountCache, useOpenAiCache } from './openai-cache.ts'
import { Refusal } from './refusal.ts'
import type { Frame, Reply, ReplyTimeAndIds } from './upstream.ts'

/** Path of completions of a prompt. */
export const COMPLETIONS_PATH = '/completions'

/** Maximum number of tokens if a request does not state one. */
const MAX_TOKENS = 16

/**
 * Creates the reply to a request for completions of a prompt; throws `Refusal` if a provider would refuse it.
 */
export function completionsReply(
  body: Fields,
  model: string,
  stamp: ReplyTimeAndIds,
  { cache, account }: AccountCache,
): Reply {
  const prompts = promptTexts(body.prompt)
  if (prompts.length === 0) throw new Refusal('malformed', "Invalid 'prompt': a prompt is required")
  const n = requestedChoices(body)
  const choices = prompts.flatMap((text) => {
    const prompt = completionPrompt(text, body, model)
    return Array.from({ length: n }, (_, choice) => ({
      output: generateOutput(prompt, choice),
      echo: body.echo === true ? text : '',
    }))
  })
  const outputs = choices.map(({ output }) => output)
  const transcript = prompts.join('\n')
  const blocks = [{ content: transcript, characters: transcript.length }]
  const usage = countCallUsage(
    transcript,
    useOpenAiCache(cache, { account, model, body, transcript, blocks }),
    outputs,
  )
  const head = { id: stamp.id('cmpl-'), object: 'text_completion', created: stamp.created, model }
  const choiceOf = (index: number, text: string, finish: string | null): Fields => ({
    text,
    index,
    logprobs: null,
    finish_reason: finish,
  })
  if (body.stream !== true) {
    const whole = choices.map(({ echo, output }, index) =>
      choiceOf(index, echo + output.text.join(''), FINISH_REASON[output.stopCause]),
    )
    return { kind: 'whole', body: { ...head, choices: whole, usage }, tokens: maxTokensOfOutputs(outputs) }
  }
  const includesUsage = asFields(body.stream_options).include_usage === true
  const frame = (shown: readonly Fields[], tokens: number, used: unknown = null): Frame => ({
    text: `data: ${JSON.stringify({ ...head, choices: shown, ...(includesUsage && { usage: used }) })}\n\n`,
    tokens,
  })
  const streams = choices.map(({ echo, output }, index) => [
    ...[...(echo === '' ? [] : [echo]), ...output.text].map((piece) =>
      frame([choiceOf(index, piece, null)], index === 0 ? 1 : 0),
    ),
    frame([choiceOf(index, '', FINISH_REASON[output.stopCause])], 0),
  ])
  const done: Frame = { text: 'data: [DONE]\n\n', tokens: 0 }
  return {
    kind: 'stream',
    frames: [...interleaveFrames(streams), ...(includesUsage ? [frame([], 0, usage)] : []), done],
  }
}

/**
 * Reads one prompt or several. Each is a text, or a list of token ids, which becomes a text with these
 * numbers.
 */
function promptTexts(prompt: unknown): string[] {
  if (typeof prompt === 'string') return [prompt]
  const items = asList(prompt)
  if (items.length > 0 && items.every((item) => typeof item === 'number')) return [items.join(' ')]
  return items.map((item) => (Array.isArray(item) ? item.join(' ') : asString(item)))
}

function completionPrompt(text: string, body: Fields, model: string) {
  return {
    model,
    transcript: text,
    ...conversationState([{ kind: 'user', text, hasMedia: false }]),
    tools: [],
    toolChoice: 'none',
    parallelTools: false,
    announcesTools: false,
    thinks: false,
    jsonSchema: undefined,
    maxTokens: asNumber(body.max_tokens) ?? MAX_TOKENS,
    stop: typeof body.stop === 'string' ? [body.stop] : asList(body.stop).map(asString),
  } as const
}
