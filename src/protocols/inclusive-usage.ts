import type { Usage } from '../domain/usage.ts'
import { asRecord } from './json/record.ts'
import { promptOnly, type ReportedUsage } from './reported-usage.ts'
import { type Counts, count, maxCount, toCount } from './token-count.ts'

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

/** A part of prompt or output that some upstreams count in addition to it. */
interface Detail {
  readonly tokens: number
  /** More than the whole that it should be a part of. */
  readonly isLarger: boolean
}

/**
 * Usage in which details are part of their totals, as chat and responses upstreams report it, made disjoint; undefined if there is no prompt count, and the prompt
 * alone if there is no output count, not even by way of `total_tokens`. A detail that cannot be believed is
 * left out, and the rest counts. Seen in traffic:
 * - tokens read from a cache have five names, and tokens written to one are of the five-minute kind unless
 *   split;
 * - some upstreams leave reasoning, audio or cached tokens out of their counts: `total_tokens` then includes
 *   them;
 * - some leave reasoning out of the details, too (Gemini): what `total_tokens` includes and nothing explains
 *   was thought,
 * or is the prompt where that is told as 0;
 * - a detail that is larger than its total, which `total_tokens` does not explain, is clamped to it;
 * - tokens reported as both read and written: the larger count stands, the other as far as the prompt has
 *   room.
 */
export function readInclusiveUsage(value: unknown): ReportedUsage | undefined {
  const usage = asRecord(value)
  if (!usage) return undefined
  const total = toCount(usage['total_tokens'])
  const saidPrompt = toCount(usage['prompt_tokens'] ?? usage['input_tokens'])
  const saidOutput = toCount(usage['completion_tokens'] ?? usage['output_tokens'])
  const prompt = saidPrompt ?? rest(total, saidOutput)
  const toldOutput = saidOutput ?? rest(total, saidPrompt)
  if (prompt === undefined) return undefined
  const completion = toldOutput ?? 0
  const promptDetails =
    asRecord(usage['prompt_tokens_details']) ?? asRecord(usage['input_tokens_details']) ?? NONE
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
  const added = excess > 0 ? explaining(excess, [audio, reasoning, read, write]) : []
  const unexplained = excess - sumOf(added)
  const thought = prompt > 0 ? unexplained : 0
  const output = completion + thought + sumOf(added.filter((detail) => detail === reasoning))
  const input = prompt + unexplained - thought + sumOf(added.filter((detail) => detail !== reasoning))
  const cacheWrite = Math.min(written, cached > written ? Math.max(input - cached, 0) : input)
  const cacheRead = Math.min(cached, input - cacheWrite)
  const cacheWrite1h = Math.min(written1h, cacheWrite)
  const told: Usage = {
    input: input - cacheRead - cacheWrite,
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
  return toldOutput === undefined ? promptOnly(told) : told
}

function rest(total: number | undefined, known: number | undefined): number | undefined {
  return total === undefined || known === undefined || known > total ? undefined : total - known
}

function part(tokens: number, whole: number): Detail {
  return { tokens, isLarger: tokens > whole }
}

function sumOf(details: readonly Detail[]): number {
  return details.reduce((sum, { tokens }) => sum + tokens, 0)
}

/**
 * Details that make up exactly `excess`, preferably ones larger than their whole. If nothing makes it up,
 * those which are larger than their whole, and so no part of it, as far as there is room for all of them.
 */
function explaining(excess: number, details: readonly Detail[]): readonly Detail[] {
  const candidates = details
    .filter(({ tokens }) => tokens > 0)
    .sort((a, b) => Number(b.isLarger) - Number(a.isLarger))
  for (let chosen = 1; chosen < 1 << candidates.length; chosen++) {
    const some = candidates.filter((_, place) => (chosen & (1 << place)) !== 0)
    if (sumOf(some) === excess) return some
  }
  const larger = candidates.filter(({ isLarger }) => isLarger)
  return sumOf(larger) <= excess ? larger : []
}
