import type { StatedService } from './service-tier.ts'
import type { AdvisorTokens, ToolUse } from './tool-use.ts'
import { NO_USAGE, promptTokens, type Usage } from './usage.ts'
import { asRecord } from './json/record.ts'

export interface ReportedUsage extends Usage {
  /**
   * Whether the output must be counted by the gateway, because the upstream reported only the prompt or an
   * implausible output. `output` is 0 then.
   */
  readonly outputIsUnknown?: true
  /**
   * Whether the tokens of the prompt must be counted by the gateway, because the upstream reported only
   * search units.
   */
  readonly promptIsUnknown?: true
  /**
   * Whether the upstream did not report the lifetime of tokens written to a cache. `cacheWrite5m` then
   * contains these tokens.
   */
  readonly lifetimeIsUnknown?: true
  /** Service tier and region that the response states; absent if it states neither. */
  readonly served?: StatedService
  /**
   * The output that follows from the reported total. Present if only the total includes all of the output.
   */
  readonly byTotal?: OutputInTotal
  /** Uses of the provider's tools, except web searches; absent if none were reported. */
  readonly tools?: readonly ToolUse[]
  /** Tokens of other models, which have prices of their own; absent if none were reported. */
  readonly advisors?: readonly AdvisorTokens[]
  /** Whether the provider fell back to another model than the requested one, to which the numbers then belong. */
  readonly isFallback?: true
}

/**
 * The number of output tokens that follows from a reported total, if only the total includes all of the
 * output.
 */
export interface OutputInTotal {
  readonly total: number
  /**
   * Number of output tokens if the total is right, including tokens that no detail of the report explains.
   */
  readonly output: number
  /** The reported usage without the total; undefined if only the total was reported. */
  readonly otherwise: ReportedUsage | undefined
}

/** Maximum plausible number of output tokens if the request states no maximum. */
const MAX_UNNAMED_OUTPUT = 65_536

/**
 * Returns the report. If its total is implausible, returns the report without the total. A total is
 * implausible if the output that follows from it exceeds the maximum of output tokens.
 */
export function withCredibleTotal(
  reported: ReportedUsage,
  maximum = MAX_UNNAMED_OUTPUT,
): ReportedUsage | undefined {
  const { byTotal } = reported
  return byTotal && byTotal.output > maximum ? byTotal.otherwise : reported
}

/** Returns only the prompt of a usage; undefined if it has none. */
export function promptUsage(
  usage: Omit<ReportedUsage, 'outputIsUnknown'> | undefined,
): ReportedUsage | undefined {
  if (!usage || promptTokens(usage) === 0) return undefined
  return { ...usage, output: NO_USAGE.output, reasoning: NO_USAGE.reasoning, outputIsUnknown: true }
}

/** Returns the later of two reports of usage. Returns the earlier one if only that contains the output. */
export function preferLaterUsage(
  before: ReportedUsage | undefined,
  later: ReportedUsage | undefined,
): ReportedUsage | undefined {
  if (!later || (later.outputIsUnknown && before && !before.outputIsUnknown)) return before
  return before?.served && !later.served ? { ...later, served: before.served } : later
}

/** Returns only the numbers of a report of usage. */
export function numbersOfReport(reported: ReportedUsage): Usage {
  const {
    outputIsUnknown: _output,
    promptIsUnknown: _prompt,
    lifetimeIsUnknown: _lifetime,
    served: _served,
    byTotal: _,
    tools: _tools,
    advisors: _advisors,
    isFallback: _fallback,
    ...usage
  } = reported
  return usage
}

/**
 * How long tokens stay in a prompt cache, ascending, with the field of `Usage` that counts the tokens written
 * for that time.
 */
export const CACHE_WRITE_FIELDS = {
  '5m': 'cacheWrite5m',
  '30m': 'cacheWrite30m',
  '1h': 'cacheWrite1h',
  '12h': 'cacheWrite12h',
} as const satisfies Readonly<Record<string, keyof Usage>>

/** How long tokens stay in a prompt cache. */
export type CacheWriteLifetime = keyof typeof CACHE_WRITE_FIELDS

/** Moves the tokens that were written to a cache for an unknown time to the field for this lifetime. */
export function withCacheWriteLifetime(reported: ReportedUsage, lifetime: CacheWriteLifetime): ReportedUsage {
  const { lifetimeIsUnknown: _, cacheWrite5m: written, ...others } = reported
  return { ...others, cacheWrite5m: 0, [CACHE_WRITE_FIELDS[lifetime]]: written }
}

/**
 * A part of the prompt or output, such as cached tokens. Some upstreams do not include it in the number for
 * the prompt or output, but report it in addition.
 */
interface Detail {
  readonly tokens: number
  /** Whether the part is larger than the number of tokens that should include it. */
  readonly isLarger: boolean
}

/** Creates a detail of `tokens` tokens that the number `whole` should include. */
export function createTokenDetail(tokens: number, whole: number): Detail {
  return { tokens, isLarger: tokens > whole }
}

/** Sum of the tokens of the details. */
export function sumOfDetails(details: readonly Detail[]): number {
  return details.reduce((sum, { tokens }) => sum + tokens, 0)
}

/**
 * Finds the details that explain why a total exceeds the sum of its parts by `excess`: those whose sum is
 * exactly `excess`. Details larger than the number that should include them are preferred, then earlier ones.
 * If no details have this sum, returns all details larger than that number, if their sum is at most `excess`.
 */
export function findExplainingDetails(excess: number, details: readonly Detail[]): readonly Detail[] {
  if (excess <= 0) return []
  const candidates = details
    .filter(({ tokens }) => tokens > 0)
    .sort((a, b) => Number(b.isLarger) - Number(a.isLarger))
  for (let chosen = 1; chosen < 1 << candidates.length; chosen++) {
    const some = candidates.filter((_, place) => (chosen & (1 << place)) !== 0)
    if (sumOfDetails(some) === excess) return some
  }
  const larger = candidates.filter(({ isLarger }) => isLarger)
  return sumOfDetails(larger) <= excess ? larger : []
}

const NONE: UpstreamCounts = {}

/**
 * Names that providers use for the number of tokens read from a cache, in the details of the prompt or in the
 * usage itself.
 */
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
 * Reads the usage of a chat or responses upstream, and makes its numbers disjoint; upstreams include details in
 * the totals. Returns undefined without a prompt number. Returns only the prompt if the output number is
 * missing and cannot be computed from `total_tokens`. Implausible details are ignored. Observed in traffic:
 * - tokens read from a cache have five names; the lifetime of tokens written to a cache is unknown unless they
 * are split by lifetime. In `cache_write_tokens_details`, tokens without a lifetime are written for 30 minutes;
 * - some upstreams leave reasoning, audio or cached tokens out of their numbers, but not out of
 * `total_tokens`;
 * - Gemini may leave reasoning out of the details too: the part of `total_tokens` that nothing explains is
 * reasoning. `byTotal` reports it, because whether it is plausible depends on the request;
 * - a detail larger than its number, which `total_tokens` does not explain, is reduced to that number. Without
 * `total_tokens`, cached tokens that exceed the prompt are counted beside it
 * (`docs/decisions/cached-tokens.md`);
 * - tokens of audio and images are reported without regard to the cache. They count as uncached as far as
 * possible, except for those in `cached_tokens_details`; the others are cached;
 * - if tokens are reported as both read and written, the larger number is kept, and the other is limited to the
 * remaining prompt.
 */
export function readInclusiveUsage(value: unknown): ReportedUsage | undefined {
  const usage = asRecord(value)
  return usage && readUsage(usage, plausibleCount(usage['total_tokens']))
}

function readUsage(usage: UpstreamCounts, total: number | undefined): ReportedUsage | undefined {
  const statedPrompt = plausibleCount(usage['prompt_tokens'] ?? usage['input_tokens'])
  const statedOutput = plausibleCount(usage['completion_tokens'] ?? usage['output_tokens'])
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

  const cached = Math.max(
    plausibleCountAt(promptDetails, 'cached_tokens'),
    largestCount(usage, ...CACHE_READ),
  )
  const written1h = largestCount(usage, ...CACHE_WRITTEN_1H)
  const written5m = largestCount(usage, ...CACHE_WRITTEN_5M)
  const lifetimes = asRecord(promptDetails['cache_write_tokens_details'])
  const written12h = lifetimes ? plausibleCountAt(lifetimes, 'ttl_12h_tokens') : 0
  const written30m = lifetimes ? plausibleCountAt(lifetimes, 'ttl_30m_tokens') : 0
  const written = Math.max(
    largestCount(promptDetails, ...CACHE_WRITTEN),
    plausibleCountAt(usage, 'cache_creation_input_tokens'),
    written1h + written5m,
    written12h + written30m,
  )
  const audio = createTokenDetail(plausibleCountAt(promptDetails, 'audio_tokens'), prompt)
  const reasoning = createTokenDetail(plausibleCountAt(outputDetails, 'reasoning_tokens'), completion)
  const read = createTokenDetail(cached, prompt)
  const write = createTokenDetail(written, prompt)

  const excess = Math.max((total ?? 0) - prompt - completion, 0)
  const hasTotal = usage['total_tokens'] !== undefined && usage['total_tokens'] !== null
  const added = hasTotal
    ? findExplainingDetails(excess, [reasoning, read, write, audio])
    : [read, write].filter(({ isLarger }) => isLarger)
  const thought = hasTotal ? excess - sumOfDetails(added) : 0
  const output = completion + thought + sumOfDetails(added.filter((detail) => detail === reasoning))
  const input = prompt + sumOfDetails(added.filter((detail) => detail !== reasoning))
  const cacheWrite = Math.min(written, cached > written ? Math.max(input - cached, 0) : input)
  const cacheRead = Math.min(cached, input - cacheWrite)
  const cacheWrite1h = Math.min(written1h, cacheWrite)
  const cacheWrite12h = Math.min(written12h, cacheWrite - cacheWrite1h)
  const others = cacheWrite - cacheWrite1h - cacheWrite12h
  const isUnknown = others > 0 && !lifetimes && written1h + written5m === 0
  const uncached = input - cacheRead - cacheWrite
  const cachedDetails = asRecord(promptDetails['cached_tokens_details']) ?? NONE
  const split = splitByCache(audio, plausibleCountAt(cachedDetails, 'audio_tokens'), uncached, cacheRead)
  const audioInput = split.input
  const seen = splitByCache(
    createTokenDetail(plausibleCountAt(promptDetails, 'image_tokens'), input),
    plausibleCountAt(cachedDetails, 'image_tokens'),
    uncached - audioInput,
    cacheRead - split.cached,
  )
  const audioOutput = Math.min(plausibleCountAt(outputDetails, 'audio_tokens'), output)
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
    ...(split.cached > 0 && { audioCacheRead: split.cached }),
    ...(seen.cached > 0 && { imageCacheRead: seen.cached }),
    audioOutput,
    imageOutput: Math.min(plausibleCountAt(outputDetails, 'image_tokens'), output - audioOutput),
    cacheRead,
    cacheWrite5m: lifetimes ? 0 : others,
    cacheWrite1h,
    cacheWrite30m: lifetimes ? others : 0,
    cacheWrite12h,
    ...(isUnknown && { lifetimeIsUnknown: true }),
    output,
    reasoning: Math.min(reasoning.tokens + thought, output),
    webSearches: Math.max(
      plausibleCountAt(asRecord(usage['server_tool_use_details']) ?? NONE, 'web_search_requests'),
      plausibleCountAt(asRecord(usage['server_tool_use']) ?? NONE, 'web_search_requests'),
    ),
  }
  return knownOutput === undefined ? promptUsage(counts) : counts
}

/**
 * Divides the tokens of one modality into uncached and cached ones, of which there are at most `maxInput` and
 * `maxCached`. `statedCached` is 0 if the upstream did not report how many are cached.
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

/** Maximum plausible number of tokens. */
const MAX_COUNT = 1_000_000_000

/** The usage object of an upstream, or a part of it. */
export type UpstreamCounts = Readonly<Record<string, unknown>>

/** Returns a plausible number, an integer from 0 to 1,000,000,000; undefined for anything else. */
export function plausibleCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_COUNT
    ? value
    : undefined
}

/** Returns the number with this name; 0 if it is implausible. */
export function plausibleCountAt(counts: UpstreamCounts, name: string): number {
  return plausibleCount(counts[name]) ?? 0
}

/** Returns the largest of several numbers with the same meaning. */
export function largestCount(counts: UpstreamCounts, ...names: readonly string[]): number {
  let largest = 0
  for (const name of names) largest = Math.max(largest, plausibleCountAt(counts, name))
  return largest
}
