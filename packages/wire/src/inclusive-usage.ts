import { NO_USAGE } from './usage.ts'
import { asRecord } from './json/record.ts'
import { type Detail, explaining, part, sumOf } from './plausible-total.ts'
import { promptOnly, type ReportedUsage } from './reported-usage.ts'
import { type Counts, count, maxCount, toCount } from './token-count.ts'

const NONE: Counts = {}

/** Names that providers use for the same count, in the details of the prompt and in the usage itself. */
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
 * Reads the usage of a chat or responses upstream, whose details are included in their totals, and makes its
 * counts disjoint. Returns undefined without a prompt count, and only the prompt if the output count is
 * missing and cannot be derived from `total_tokens`. Implausible details are ignored. Observed in traffic:
 * - tokens read from a cache have five names; tokens written to a cache are of the five-minute kind unless
 * they are split by lifetime;
 * - some upstreams leave reasoning, audio or cached tokens out of their counts, but not out of
 * `total_tokens`;
 * - Gemini may leave reasoning out of the details too: the part of `total_tokens` that nothing explains is
 * reasoning. `byTotal` reports it, because whether it is plausible depends on the request;
 * - a detail larger than its count, which `total_tokens` does not explain, is clamped to that count;
 * - tokens of audio and images are reported without regard to the cache. They count as uncached as far as
 * possible, except for those in `cached_tokens_details`; the others are cached;
 * - tokens reported as both read and written: the larger count is kept, the other is limited to the remaining
 * prompt.
 */
export function readInclusiveUsage(value: unknown): ReportedUsage | undefined {
  const usage = asRecord(value)
  return usage && readUsage(usage, toCount(usage['total_tokens']))
}

function readUsage(usage: Counts, total: number | undefined): ReportedUsage | undefined {
  const statedPrompt = toCount(usage['prompt_tokens'] ?? usage['input_tokens'])
  const statedOutput = toCount(usage['completion_tokens'] ?? usage['output_tokens'])
  const prompt = statedPrompt ?? difference(total, statedOutput)
  const knownOutput = statedOutput ?? difference(total, statedPrompt)
  if (prompt === undefined) return undefined
  const completion = knownOutput ?? 0
  const promptDetails =
    asRecord(usage['prompt_tokens_details']) ??
    asRecord(usage['input_tokens_details']) ??
    asRecord(usage['input_token_details']) ??
    NONE
  const outputDetails =
    asRecord(usage['completion_tokens_details']) ?? asRecord(usage['output_tokens_details']) ?? NONE

  const cached = Math.max(count(promptDetails, 'cached_tokens'), maxCount(usage, ...CACHE_READ))
  const written1h = maxCount(usage, ...CACHE_WRITTEN_1H)
  const written = Math.max(
    maxCount(promptDetails, ...CACHE_WRITTEN),
    count(usage, 'cache_creation_input_tokens'),
    written1h + maxCount(usage, ...CACHE_WRITTEN_5M),
  )
  const audio = part(count(promptDetails, 'audio_tokens'), prompt)
  const reasoning = part(count(outputDetails, 'reasoning_tokens'), completion)
  const read = part(cached, prompt)
  const write = part(written, prompt)

  const excess = Math.max((total ?? 0) - prompt - completion, 0)
  const added = explaining(excess, [reasoning, read, write, audio])
  const thought = excess - sumOf(added)
  const output = completion + thought + sumOf(added.filter((detail) => detail === reasoning))
  const input = prompt + sumOf(added.filter((detail) => detail !== reasoning))
  const cacheWrite = Math.min(written, cached > written ? Math.max(input - cached, 0) : input)
  const cacheRead = Math.min(cached, input - cacheWrite)
  const cacheWrite1h = Math.min(written1h, cacheWrite)
  const uncached = input - cacheRead - cacheWrite
  const cachedDetails = asRecord(promptDetails['cached_tokens_details']) ?? NONE
  const heard = splitByCache(audio, count(cachedDetails, 'audio_tokens'), uncached, cacheRead)
  const audioInput = heard.input
  const seen = splitByCache(
    part(count(promptDetails, 'image_tokens'), input),
    count(cachedDetails, 'image_tokens'),
    uncached - audioInput,
    cacheRead - heard.cached,
  )
  const audioOutput = Math.min(count(outputDetails, 'audio_tokens'), output)
  const isByTotal = thought > 0 || (statedOutput === undefined && completion > 0)
  const counts: ReportedUsage = {
    ...NO_USAGE,
    ...(total !== undefined &&
      isByTotal && {
        byTotal: { total, output: completion + thought, otherwise: readUsage(usage, undefined) },
      }),
    input: uncached,
    audioInput,
    imageInput: seen.input,
    ...(heard.cached > 0 && { audioCacheRead: heard.cached }),
    ...(seen.cached > 0 && { imageCacheRead: seen.cached }),
    audioOutput,
    imageOutput: Math.min(count(outputDetails, 'image_tokens'), output - audioOutput),
    cacheRead,
    cacheWrite5m: cacheWrite - cacheWrite1h,
    cacheWrite1h,
    output,
    reasoning: Math.min(reasoning.tokens + thought, output),
    webSearches: Math.max(
      count(asRecord(usage['server_tool_use_details']) ?? NONE, 'web_search_requests'),
      count(asRecord(usage['server_tool_use']) ?? NONE, 'web_search_requests'),
    ),
  }
  return knownOutput === undefined ? promptOnly(counts) : counts
}

/**
 * Splits the tokens of one modality into uncached and cached ones, within the remaining counts.
 * `statedCached` is 0 if it was not reported.
 */
function splitByCache(
  { tokens, isLarger }: Detail,
  statedCached: number,
  maxInput: number,
  maxCached: number,
): { readonly input: number; readonly cached: number } {
  const input = Math.min(Math.max(tokens - statedCached, 0), maxInput)
  const rest = isLarger ? 0 : tokens - input
  return { input, cached: Math.min(Math.max(statedCached, rest), maxCached) }
}

function difference(total: number | undefined, known: number | undefined): number | undefined {
  return total === undefined || known === undefined || known > total ? undefined : total - known
}
