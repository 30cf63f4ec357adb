import {
  type ToolKind,
  ToolUseCounter,
  type ToolUse,
  usesOfOtherKinds,
  countUsesOfKind,
} from '../tool-use.ts'
import { NO_USAGE, promptTokens, type Usage } from '../usage.ts'
import type { Fields } from '../field.ts'
import { firstStatedTier, laterStatedService, type StatedService } from '../service-tier.ts'
import { asRecord } from '../json/record.ts'
import {
  plausibleCountAt,
  findExplainingDetails,
  createTokenDetail,
  promptUsage,
  type ReportedUsage,
  sumOfDetails,
  plausibleCount,
} from '../reported-usage.ts'
import { partsOfCandidate } from './answer.ts'

/** Used instead of a reported total of tokens that is implausible. */
const NO_TOTAL = 0

/**
 * Reads `usageMetadata`, in which numbers that are 0 are absent. The total is the sum of prompt, response,
 * thoughts and results of the provider's tools. Thoughts count as output, tool results as input. Cached
 * tokens are part of the prompt, unless the total shows that they are not. If the total is larger than this
 * sum, the difference counts as thoughts (see `byTotal`), or as the prompt if no prompt is reported. Returns
 * undefined without a prompt, and only the prompt without output.
 */
function read(
  usage: Fields,
  uses: readonly ToolUse[],
  total = plausibleCount(usage['totalTokenCount']),
): ReportedUsage | undefined {
  const candidates = plausibleCountAt(usage, 'candidatesTokenCount')
  const thoughts = plausibleCountAt(usage, 'thoughtsTokenCount')
  const toolUse = plausibleCountAt(usage, 'toolUsePromptTokenCount')
  const rest = Math.max((total ?? 0) - candidates - thoughts - toolUse, 0)
  const prompt = plausibleCount(usage['promptTokenCount']) ?? (rest > 0 ? rest : undefined)
  if (prompt === undefined) return undefined
  const excess = Math.max(rest - prompt, 0)
  const detail = createTokenDetail(plausibleCountAt(usage, 'cachedContentTokenCount'), prompt + toolUse)
  const beside = sumOfDetails(findExplainingDetails(excess, [detail]))
  const unexplained = excess - beside
  const cached = Math.min(detail.tokens, prompt + toolUse + beside)
  const input = prompt + toolUse + beside - cached
  const output = candidates + thoughts + unexplained
  const uncached = (modality: string): number =>
    Math.max(
      ofModality(usage['promptTokensDetails'], modality) +
        ofModality(usage['toolUsePromptTokensDetails'], modality) -
        (beside > 0 ? 0 : ofModality(usage['cacheTokensDetails'], modality)),
      0,
    )
  const audioInput = Math.min(uncached('AUDIO'), input)
  const audioOutput = Math.min(ofModality(usage['candidatesTokensDetails'], 'AUDIO'), output)
  const audioCacheRead = Math.min(ofModality(usage['cacheTokensDetails'], 'AUDIO'), cached)
  const imageCacheRead = Math.min(ofModality(usage['cacheTokensDetails'], 'IMAGE'), cached - audioCacheRead)
  const counts: ReportedUsage = {
    ...NO_USAGE,
    ...(total !== undefined &&
      unexplained > 0 && { byTotal: { total, output, otherwise: read(usage, uses, NO_TOTAL) } }),
    input,
    audioInput,
    ...(audioCacheRead > 0 && { audioCacheRead }),
    ...(imageCacheRead > 0 && { imageCacheRead }),
    imageInput: Math.min(uncached('IMAGE'), input - audioInput),
    cacheRead: cached,
    audioOutput,
    imageOutput: Math.min(ofModality(usage['candidatesTokensDetails'], 'IMAGE'), output - audioOutput),
    output,
    reasoning: thoughts + unexplained,
    webSearches: countUsesOfKind(uses, 'web_search'),
    ...(uses.length > 0 && { tools: usesOfOtherKinds(uses, 'web_search') }),
  }
  return counts.output === 0 ? promptUsage(counts) : counts
}

/** Reads the usage of an embeddings response, which only newer models report; undefined without a prompt. */
export function embeddedUsage(usage: Fields = {}): Usage | undefined {
  const input = plausibleCountAt(usage, 'promptTokenCount') || plausibleCountAt(usage, 'totalTokenCount')
  if (input === 0) return undefined
  // Some responses name the member with the details `promptTokensDetails`.
  const details = usage['promptTokenDetails'] ?? usage['promptTokensDetails']
  const audioInput = Math.min(ofModality(details, 'AUDIO'), input)
  const imageInput = Math.min(ofModality(details, 'IMAGE'), input - audioInput)
  return { ...NO_USAGE, input, audioInput, imageInput }
}

/** The number of tokens of one modality in the details. */
function ofModality(details: unknown, modality: string): number {
  if (!Array.isArray(details)) return 0
  let tokens = 0
  for (const value of details as readonly unknown[]) {
    const detail = asRecord(value)
    if (detail?.['modality'] === modality) tokens += plausibleCountAt(detail, 'tokenCount')
  }
  return tokens
}

/**
 * Usage of a stream. Each chunk reports the usage so far. The last report counts, even if it is lower than an
 * earlier one. A report with neither a prompt nor a total only adds its fields to the previous one; a report
 * without output is ignored if an earlier one had output.
 */
export class StreamUsage {
  #metadata: Fields | undefined
  /** Service tier and region that the chunks so far have stated. */
  served: StatedService | undefined
  /** Uses of the provider's tools. A later chunk may report the same uses again. */
  readonly tools = new ToolUseCounter()
  readonly #found: FoundInChunks = { addresses: false, queries: false }

  /** Reads the usage in a chunk, if it has one. */
  read(chunk: Fields): void {
    noteTools(this.tools, chunk, this.#found)
    const later = asRecord(chunk['usageMetadata'])
    if (!later) return
    this.served = laterStatedService(this.served, firstStatedTier(later['serviceTier'], later['trafficType']))
    const before = this.#metadata
    if (!isReport(later)) this.#metadata = { ...before, ...later }
    else if (!before || hasOutput(later) || !hasOutput(before)) this.#metadata = later
  }

  /** The usage so far; undefined if no plausible report has arrived. */
  get usage(): ReportedUsage | undefined {
    const usage = this.#metadata && read(this.#metadata, this.tools.uses)
    return usage && this.served ? { ...usage, served: this.served } : usage
  }
}

function isReport(usage: Fields): boolean {
  return usage['promptTokenCount'] !== undefined || usage['totalTokenCount'] !== undefined
}

function hasOutput(usage: Fields): boolean {
  return usage['candidatesTokenCount'] !== undefined || usage['thoughtsTokenCount'] !== undefined
}

/** What the chunks of a response have had so far. */
interface FoundInChunks {
  /** Whether the provider has read addresses that the prompt contains. */
  addresses: boolean
  /** Whether the provider has named the queries of a search. */
  queries: boolean
}

/**
 * Records the uses of the provider's tools that a chunk reports, in all candidates. Chunks may repeat uses
 * reported earlier, so for each kind the largest number is kept. Pages that the provider cites show a search if
 * it names no queries, unless it has read addresses: then these are the pages.
 */
function noteTools(tally: ToolUseCounter, { candidates }: Fields, found: FoundInChunks): void {
  if (!Array.isArray(candidates)) return
  const totals = new Map<ToolKind, number>()
  for (const value of candidates as readonly unknown[]) {
    const candidate = asRecord(value)
    if (!candidate) continue
    found.addresses ||= addressesOf(candidate).length > 0
    found.queries ||= queriesOf(candidate).length > 0
    for (const [kind, count] of usesIn(candidate)) totals.set(kind, (totals.get(kind) ?? 0) + count)
  }
  // All code of a response counts as one use, because the provider executes it together.
  if (totals.has('code_execution')) totals.set('code_execution', 1)
  if (found.addresses && !found.queries) {
    totals.delete('web_search')
    tally.remove('web_search')
  }
  for (const [kind, count] of totals) {
    if (count > countUsesOfKind(tally.uses, kind)) tally.note(kind, { kind, count })
  }
}

function usesIn(candidate: Fields): (readonly [ToolKind, number])[] {
  const grounding = asRecord(candidate['groundingMetadata'])
  const address = asRecord(candidate['urlContextMetadata'])
  const executed = partsOfCandidate(candidate).some((part) => asRecord(asRecord(part)?.['executableCode']))
  if (!grounding && !address && !executed) return []
  const chunks = listOf(grounding?.['groundingChunks']).map((chunk) => asRecord(chunk))
  const cites = (name: string): boolean => chunks.some((chunk) => chunk?.[name] !== undefined)
  const isMapped = cites('maps') || grounding?.['googleMapsWidgetContextToken'] !== undefined
  const uses: (readonly [ToolKind, number])[] = [
    ['web_search', Math.max(queriesOf(candidate).length, cites('web') ? 1 : 0)],
    ['google_maps', isMapped ? 1 : 0],
    ['file_search', cites('retrievedContext') ? 1 : 0],
    ['url_context', addressesOf(candidate).length],
    ['code_execution', executed ? 1 : 0],
  ]
  return uses.filter(([, count]) => count > 0)
}

function queriesOf(candidate: Fields): readonly unknown[] {
  return listOf(asRecord(candidate['groundingMetadata'])?.['webSearchQueries'])
}

function addressesOf(candidate: Fields): readonly unknown[] {
  return listOf(asRecord(candidate['urlContextMetadata'])?.['urlMetadata'])
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/**
 * Writes the usage. Numbers that are 0 are left out, as the provider does, except for those that clients add
 * up.
 */
export function writeUsage(usage: Usage): object {
  const { cacheRead, output, reasoning } = usage
  const prompt = promptTokens(usage)
  const thoughts = Math.min(reasoning, output)
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: output - thoughts,
    totalTokenCount: prompt + output,
    ...(cacheRead > 0 && { cachedContentTokenCount: cacheRead }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
  }
}
