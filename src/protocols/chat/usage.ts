import type { Usage } from '../../domain/usage.ts'
import { asRecord } from '../record.ts'
import { type Counts, count, isSound, most, toCount } from '../token-count.ts'

const NONE: Counts = {}

/** What providers name the same count; of the prompt's details, of the usage itself. */
const CACHE_READ = [
  'prompt_cache_hit_tokens',
  'cache_read_input_tokens',
  'num_cached_tokens',
  'cached_tokens',
]
const CACHE_WRITTEN = ['cached_creation_tokens', 'cache_write_tokens', 'cache_creation_tokens']
const CACHE_WRITTEN_1H = ['claude_cache_creation_1h_tokens', 'claude_cache_creation_1_h_tokens']
const CACHE_WRITTEN_5M = ['claude_cache_creation_5m_tokens', 'claude_cache_creation_5_m_tokens']

/**
 * Usage as a chat upstream reports it, made disjoint; undefined where it is missing, is no count, or cannot be true.
 * What providers do differently, all seen in traffic:
 * - tokens read from a cache are named in five ways, and are part of the prompt in each;
 * - tokens written to a cache are part of the prompt too; where only their sum is known they are of the five-minute kind;
 * - some leave reasoning out of `completion_tokens`, or audio out of `prompt_tokens`: `total_tokens` then says so.
 */
export function readChatUsage(value: unknown): Usage | undefined {
  const usage = asRecord(value)
  if (!usage) return undefined
  const prompt = usage['prompt_tokens'] ?? usage['input_tokens']
  const completion = usage['completion_tokens'] ?? usage['output_tokens']
  if (prompt === undefined || prompt === null || completion === undefined || completion === null)
    return undefined
  const promptDetails =
    asRecord(usage['prompt_tokens_details']) ?? asRecord(usage['input_tokens_details']) ?? NONE
  const outputDetails =
    asRecord(usage['completion_tokens_details']) ?? asRecord(usage['output_tokens_details']) ?? NONE

  const cacheRead = Math.max(count(promptDetails, 'cached_tokens'), most(usage, ...CACHE_READ))
  const written = Math.max(most(promptDetails, ...CACHE_WRITTEN), count(usage, 'cache_creation_input_tokens'))
  const cacheWrite1h = most(usage, ...CACHE_WRITTEN_1H)
  const named5m = most(usage, ...CACHE_WRITTEN_5M)
  const cacheWrite5m = Math.max(named5m, written - cacheWrite1h)

  const reasoning = count(outputDetails, 'reasoning_tokens')
  const audio = count(promptDetails, 'audio_tokens')
  const leftOut = count(usage, 'total_tokens') - toCount(prompt) - toCount(completion)
  const audioLeftOut = leftOut > 0 && (leftOut === audio || leftOut === audio + reasoning) ? audio : 0
  const reasoningLeftOut = leftOut > 0 && leftOut - audioLeftOut === reasoning ? reasoning : 0
  const output = toCount(completion) + reasoningLeftOut
  const result: Usage = {
    input: toCount(prompt) + audioLeftOut - cacheRead - cacheWrite5m - cacheWrite1h,
    cacheRead,
    cacheWrite5m,
    cacheWrite1h,
    output,
    reasoning,
    webSearches: Math.max(
      count(asRecord(usage['server_tool_use_details']) ?? NONE, 'web_search_requests'),
      count(asRecord(usage['server_tool_use']) ?? NONE, 'web_search_requests'),
    ),
  }
  return isSound(result) ? result : undefined
}

/**
 * The usage of a chunk or a whole reply, wherever the provider put it: at the top, under its own name beside it, in
 * a choice, or in an error.
 */
export function usageOf(reply: Counts): Usage | undefined {
  const choices = reply['choices']
  return (
    readChatUsage(reply['usage']) ??
    readChatUsage(asRecord(reply['x_groq'])?.['usage']) ??
    (Array.isArray(choices) ? readChatUsage(asRecord(choices[0])?.['usage']) : undefined) ??
    readChatUsage(asRecord(reply['error'])?.['usage'])
  )
}
