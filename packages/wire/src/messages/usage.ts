import {
  type AdvisorTokens,
  type ToolKind,
  ToolUseCounter,
  type ToolUse,
  usesOfOtherKinds,
  countUsesOfKind,
} from '../tool-use.ts'
import { addUsage, NO_USAGE, type Usage, cacheWriteTokens } from '../usage.ts'
import { statedServiceOfMessages, withStatedService } from '../service-tier.ts'
import { asRecord } from '../json/record.ts'
import {
  plausibleCountAt,
  type UpstreamCounts,
  promptUsage,
  type ReportedUsage,
  plausibleCount,
} from '../reported-usage.ts'

const NONE: UpstreamCounts = {}

/** Fields of a reported usage whose sum is the number of prompt tokens. */
const PROMPT = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'] as const

/**
 * Reads the usage of a messages upstream, in which no number includes another. Returns undefined without a
 * valid `input_tokens`, and only the prompt without a valid `output_tokens`. Other implausible numbers are
 * ignored. Tokens written to a cache without a lifetime count as written for five minutes. If the tokens
 * split by lifetime exceed their sum, the split is used. Compactions in `iterations` are added, because the
 * sums include all iterations except these and those of other models. `seen` contains uses of tools reported
 * by blocks, which are used if the usage does not report them.
 */
export function readMessagesUsage(value: unknown, seen: readonly ToolUse[] = []): ReportedUsage | undefined {
  const usage = asRecord(value)
  if (!usage || plausibleCount(usage['input_tokens']) === undefined) return undefined
  const sums = compactionsIn(usage).map(countsIn).reduce(addUsage, countsIn(usage))
  const advisors = advisorsIn(usage)
  const used = withTools(sums, asRecord(usage['server_tool_use']) ?? NONE, seen)
  const isFallback = listed(usage['iterations']).some(({ type }) => type === 'fallback_message')
  const counts = withStatedService(
    { ...used, ...(advisors.length > 0 && { advisors }), ...(isFallback && { isFallback }) },
    statedServiceOfMessages(usage),
  )
  return plausibleCount(usage['output_tokens']) === undefined ? promptUsage(counts) : counts
}

function countsIn(usage: UpstreamCounts): Usage {
  const split = asRecord(usage['cache_creation']) ?? NONE
  const cacheWrite1h = plausibleCountAt(split, 'ephemeral_1h_input_tokens')
  const written = plausibleCountAt(usage, 'cache_creation_input_tokens')
  const output = plausibleCountAt(usage, 'output_tokens')
  const reasoning = plausibleCountAt(asRecord(usage['output_tokens_details']) ?? NONE, 'thinking_tokens')
  return {
    ...NO_USAGE,
    input: plausibleCountAt(usage, 'input_tokens'),
    cacheRead: plausibleCountAt(usage, 'cache_read_input_tokens'),
    cacheWrite5m: Math.max(plausibleCountAt(split, 'ephemeral_5m_input_tokens'), written - cacheWrite1h),
    cacheWrite1h,
    output,
    reasoning: Math.min(reasoning, output),
    webSearches: plausibleCountAt(asRecord(usage['server_tool_use']) ?? NONE, 'web_search_requests'),
  }
}

/**
 * Adds the uses of the provider's tools. All code executions of a message share one container, which counts
 * as one use.
 */
function withTools(sums: Usage, server: UpstreamCounts, seen: readonly ToolUse[]): ReportedUsage {
  const reported = (name: string, kind: ToolKind): number =>
    plausibleCount(server[name]) ?? countUsesOfKind(seen, kind)
  const fetches = reported('web_fetch_requests', 'web_fetch')
  const executions = Math.min(reported('code_execution_requests', 'code_execution'), 1)
  const tools: readonly ToolUse[] = [
    ...usesOfOtherKinds(seen, 'web_search', 'web_fetch', 'code_execution'),
    ...(fetches > 0 ? [{ kind: 'web_fetch', count: fetches } as const] : []),
    ...(executions > 0 ? [{ kind: 'code_execution', count: executions } as const] : []),
  ]
  const isReported = plausibleCount(server['web_search_requests']) !== undefined
  return {
    ...sums,
    ...(!isReported && { webSearches: countUsesOfKind(seen, 'web_search') }),
    ...((seen.length > 0 || tools.length > 0) && { tools }),
  }
}

/**
 * Merges the usage of `message_start` with that of a later `message_delta`, whose numbers are totals and
 * replace earlier ones. Prompt numbers that are implausible or all zero replace nothing, because some
 * upstreams repeat the fields without values.
 */
export function mergedUsage(before: UpstreamCounts | undefined, later: unknown): UpstreamCounts | undefined {
  const counts = asRecord(later)
  if (!counts) return before
  const saysPrompt = PROMPT.some((name) => plausibleCountAt(counts, name) > 0)
  const merged: Record<string, unknown> = { ...before }
  for (const [name, value] of Object.entries(counts)) {
    if (value === null || value === undefined) continue
    const isPrompt = (PROMPT as readonly string[]).includes(name)
    const saysNothing = isPrompt && (!saysPrompt || plausibleCount(value) === undefined)
    if (saysNothing && before?.[name] !== undefined) continue
    merged[name] = value
  }
  return merged
}

/** Collects the usage of one stream, which is reported in several events. */
export class StreamedUsage {
  #counts: UpstreamCounts | undefined
  #isFinal = false
  /** Uses of the provider's tools that blocks have reported. */
  readonly tools = new ToolUseCounter()

  /** Adds the usage of an event. `isLast` says that it is the event that ends the message. */
  add(usage: unknown, isLast: boolean): void {
    this.#counts = mergedUsage(this.#counts, usage)
    const output = asRecord(usage)?.['output_tokens']
    if (isLast && output !== undefined && output !== null) this.#isFinal = true
  }

  /**
   * Adds the usage of a repeated `message_start`, which does not replace numbers from the end of the message.
   */
  addRepeatedStart(usage: unknown): void {
    this.#counts = this.#isFinal
      ? mergedUsage(asRecord(usage), this.#counts)
      : mergedUsage(this.#counts, usage)
  }

  /** The usage so far; undefined if there is none or it is implausible. */
  get partial(): ReportedUsage | undefined {
    return readMessagesUsage(this.#counts, this.tools.uses)
  }

  /**
   * The usage of the whole message. If the end of the message reported no output, this is only the prompt,
   * because the start of a message cannot know the output.
   */
  get final(): ReportedUsage | undefined {
    return this.#isFinal ? this.partial : promptUsage(this.partial)
  }
}

const COUNTS = [
  'input_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'output_tokens',
] as const

/**
 * Finds the compactions in `iterations`: iterations in which the provider summarized the conversation. The
 * provider charges for their tokens, but does not include them in the sums. Returns an empty list if the sums
 * equal all iterations, because a proxy has included them already.
 */
function compactionsIn(usage: UpstreamCounts): UpstreamCounts[] {
  const iterations = listed(usage['iterations'])
  const compactions = iterations.filter(({ type }) => type === 'compaction')
  return compactions.length > 0 && totalOf(usage) < iterations.reduce((sum, one) => sum + totalOf(one), 0)
    ? compactions
    : []
}

/** The tokens of other models that the provider asked, which the sums do not include. */
function advisorsIn(usage: UpstreamCounts): readonly AdvisorTokens[] {
  return listed(usage['iterations'])
    .filter(({ type }) => type === 'advisor_message')
    .map((entry) => {
      const { model } = entry
      return { model: typeof model === 'string' ? model : '', usage: countsIn(entry) }
    })
}

function listed(iterations: unknown): UpstreamCounts[] {
  return Array.isArray(iterations)
    ? iterations.map((one: unknown) => asRecord(one)).filter((one) => one !== undefined)
    : []
}

function totalOf(counts: UpstreamCounts): number {
  return COUNTS.reduce((sum, name) => sum + plausibleCountAt(counts, name), 0)
}

/** Writes the usage. `input_tokens` excludes cache reads and writes; `docs/api.md: Messages response`. */
export function writeUsage(usage: Usage = NO_USAGE): object {
  const { input, cacheRead, cacheWrite5m, output, reasoning, webSearches } = usage
  const written = cacheWriteTokens(usage)
  return {
    input_tokens: input,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cacheRead,
    cache_creation: {
      ephemeral_5m_input_tokens: cacheWrite5m,
      // Longer lifetimes than one hour are written as one hour, the longest lifetime in this protocol.
      ephemeral_1h_input_tokens: written - cacheWrite5m,
    },
    output_tokens: output,
    output_tokens_details: reasoning > 0 ? { thinking_tokens: reasoning } : null,
    server_tool_use: webSearches > 0 ? { web_search_requests: webSearches, web_fetch_requests: 0 } : null,
    service_tier: null,
    inference_geo: null,
  }
}
