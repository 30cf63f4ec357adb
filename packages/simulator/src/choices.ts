import type { ModelOutput, StopCause } from './model-output.ts'
import { type Fields, asNumber } from './fields.ts'
import { Refusal } from './refusal.ts'
import type { CacheUse } from './block-cache.ts'
import { openAiCacheWrites } from './service-tier.ts'
import { estimateTokens } from './tokens.ts'
import type { Frame } from './upstream.ts'

/** The values of `finish_reason`, by the cause that ended a choice. */
export const FINISH_REASON: Readonly<Record<StopCause, string>> = {
  done: 'stop',
  stop_text: 'stop',
  length: 'length',
  tools: 'tool_calls',
}

/** Returns the number of choices that a request asks for; throws `Refusal` if a provider would refuse it. */
export function requestedChoices(body: Fields): number {
  const n = asNumber(body.n) ?? 1
  if (!Number.isInteger(n) || n < 1 || n > 128)
    throw new Refusal('malformed', "Invalid 'n': 1 to 128 is expected")
  return n
}

export function countCallUsage(
  transcript: string,
  used: CacheUse,
  outputs: readonly ModelOutput[],
  body: Fields = {},
) {
  const prompt = estimateTokens(transcript.length)
  const completion = outputs.reduce((sum, { tokens }) => sum + tokens, 0)
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: used.read,
      audio_tokens: 0,
      ...openAiCacheWrites(body, prompt, used),
    },
    completion_tokens_details: {
      reasoning_tokens: outputs.reduce((sum, { thinking }) => sum + thinking.length, 0),
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

/** Interleaves the frames of several choices. */
export function interleaveFrames(streams: readonly (readonly Frame[])[]): Frame[] {
  const longest = Math.max(...streams.map(({ length }) => length))
  return Array.from({ length: longest }, (_, at) =>
    streams.flatMap((stream) => stream.slice(at, at + 1)),
  ).flat()
}

/**
 * Returns the number of tokens of the longest output, which determines the time of an unstreamed reply,
 * because choices are generated in parallel.
 */
export function maxTokensOfOutputs(outputs: readonly ModelOutput[]): number {
  return Math.max(...outputs.map(({ tokens }) => tokens))
}
