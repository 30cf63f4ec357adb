import type { ToolKind, ToolUse } from '../../domain/tool-use.ts'
import { NO_USAGE, type Usage } from '../../domain/usage.ts'
import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'
import { explaining, part, sumOf } from '../plausible-total.ts'
import { promptOnly, type ReportedUsage } from '../reported-usage.ts'
import { count, toCount } from '../token-count.ts'
import { ToolTally, usesBeside, usesOf } from '../tool-tally.ts'
import { partsOf } from './answer.ts'

/** Stands for a total that is not believed. */
const NO_TOTAL = 0

/**
 * Reads `usageMetadata`, in which counts of 0 are absent, and the total is the sum of prompt, answer,
 * thoughts and results of the provider's tools. Thoughts are output, results of tools are input; cached
 * tokens are part of the prompt, unless the total shows that they are beside it. What else the total has
 * beyond these is thoughts, and `byTotal` tells of it; the prompt, if that is absent. Undefined without a
 * prompt; the prompt alone without any output.
 */
function read(
  usage: Fields,
  uses: readonly ToolUse[],
  total = toCount(usage['totalTokenCount']),
): ReportedUsage | undefined {
  const candidates = count(usage, 'candidatesTokenCount')
  const thoughts = count(usage, 'thoughtsTokenCount')
  const toolUse = count(usage, 'toolUsePromptTokenCount')
  const rest = Math.max((total ?? 0) - candidates - thoughts - toolUse, 0)
  const prompt = toCount(usage['promptTokenCount']) ?? (rest > 0 ? rest : undefined)
  if (prompt === undefined) return undefined
  const excess = Math.max(rest - prompt, 0)
  const detail = part(count(usage, 'cachedContentTokenCount'), prompt + toolUse)
  const beside = sumOf(explaining(excess, [detail]))
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
    webSearches: usesOf(uses, 'web_search'),
    ...(uses.length > 0 && { tools: usesBeside(uses, 'web_search') }),
  }
  return counts.output === 0 ? promptOnly(counts) : counts
}

/** Reads the usage of embeddings, which newer models tell; undefined without a prompt. */
export function embeddedUsage(usage: Fields = {}): Usage | undefined {
  const input = count(usage, 'promptTokenCount') || count(usage, 'totalTokenCount')
  if (input === 0) return undefined
  // The name of the details lacks a letter there.
  const details = usage['promptTokenDetails'] ?? usage['promptTokensDetails']
  const audioInput = Math.min(ofModality(details, 'AUDIO'), input)
  const imageInput = Math.min(ofModality(details, 'IMAGE'), input - audioInput)
  return { ...NO_USAGE, input, audioInput, imageInput }
}

/** Tokens of a modality in details that tell them. */
function ofModality(details: unknown, modality: string): number {
  if (!Array.isArray(details)) return 0
  let tokens = 0
  for (const value of details as readonly unknown[]) {
    const detail = asRecord(value)
    if (detail?.['modality'] === modality) tokens += count(detail, 'tokenCount')
  }
  return tokens
}

/**
 * Usage of a stream, whose chunks report all that was used so far: the last report counts, which may be lower
 * than an earlier one. Parts of a report are added to the one before, and one that has lost its output is
 * ignored.
 */
export class StreamUsage {
  #metadata: Fields | undefined
  /** Uses of the provider's tools, which a later chunk may tell again. */
  readonly tools = new ToolTally()

  /** Takes the report of a chunk, if it has one. */
  read(chunk: Fields): void {
    noteTools(this.tools, chunk)
    const later = asRecord(chunk['usageMetadata'])
    if (!later) return
    const before = this.#metadata
    if (!isReport(later)) this.#metadata = { ...before, ...later }
    else if (!before || hasOutput(later) || !hasOutput(before)) this.#metadata = later
  }

  /** The usage so far; undefined without a credible report. */
  get usage(): ReportedUsage | undefined {
    return this.#metadata && read(this.#metadata, this.tools.uses)
  }
}

function isReport(usage: Fields): boolean {
  return usage['promptTokenCount'] !== undefined || usage['totalTokenCount'] !== undefined
}

function hasOutput(usage: Fields): boolean {
  return usage['candidatesTokenCount'] !== undefined || usage['thoughtsTokenCount'] !== undefined
}

/**
 * Notes the uses of the provider's tools that a chunk tells, in all its candidates. Chunks may repeat what
 * earlier ones told: the largest number of each kind counts.
 */
function noteTools(tally: ToolTally, { candidates }: Fields): void {
  if (!Array.isArray(candidates)) return
  const totals = new Map<ToolKind, number>()
  for (const value of candidates as readonly unknown[]) {
    const candidate = asRecord(value)
    if (!candidate) continue
    for (const [kind, count] of usesIn(candidate)) totals.set(kind, (totals.get(kind) ?? 0) + count)
  }
  // All that was executed ran in one place.
  if (totals.has('code_execution')) totals.set('code_execution', 1)
  for (const [kind, count] of totals) {
    if (count > usesOf(tally.uses, kind)) tally.note(kind, { kind, count })
  }
}

function usesIn(candidate: Fields): (readonly [ToolKind, number])[] {
  const grounding = asRecord(candidate['groundingMetadata'])
  const address = asRecord(candidate['urlContextMetadata'])
  const executed = partsOf(candidate).some((part) => asRecord(asRecord(part)?.['executableCode']))
  if (!grounding && !address && !executed) return []
  const chunks = listOf(grounding?.['groundingChunks']).map((chunk) => asRecord(chunk))
  const cites = (name: string): boolean => chunks.some((chunk) => chunk?.[name] !== undefined)
  const isMapped = cites('maps') || grounding?.['googleMapsWidgetContextToken'] !== undefined
  const uses: (readonly [ToolKind, number])[] = [
    ['web_search', Math.max(listOf(grounding?.['webSearchQueries']).length, cites('web') ? 1 : 0)],
    ['google_maps', isMapped ? 1 : 0],
    ['file_search', cites('retrievedContext') ? 1 : 0],
    ['url_context', listOf(address?.['urlMetadata']).length],
    ['code_execution', executed ? 1 : 0],
  ]
  return uses.filter(([, count]) => count > 0)
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
