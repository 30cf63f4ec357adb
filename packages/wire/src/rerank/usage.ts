import { NO_USAGE, promptTokens, type Usage } from '../usage.ts'
import { asRecord } from '../json/record.ts'
import type { ReportedUsage } from '../reported-usage.ts'
import { type Counts, count, maxCount, toCount } from '../token-count.ts'
import type { ScannedObject } from '../json/scanned-object.ts'

const NONE: Counts = {}

/**
 * Reads the usage of a rerank upstream: tokens, and search units (`meta.billed_units.search_units`) from
 * providers that charge for them; undefined if it reports neither. Implausible counts are ignored. Sources of
 * tokens, in order of precedence:
 * - `usage`, with the prompt's share or only a total: everything that was not generated was read;
 * - `meta.tokens`, the tokens that the model read;
 * - `meta.billed_units`, the units that the provider charges for.
 */
export function readRerankUsage(reply: ScannedObject): ReportedUsage | undefined {
  const usage = asRecord(reply.value('usage')) ?? NONE
  const reported = asRecord(reply.value('meta')) ?? NONE
  const billed = asRecord(reported['billed_units']) ?? NONE
  const places = [usage, asRecord(reported['tokens']) ?? NONE, billed]
  const tokens = places.map(tokensIn).find((found) => found !== undefined)
  const units = billed['search_units']
  // Cohere's schema allows a fraction.
  const searchUnits = toCount(typeof units === 'number' ? Math.ceil(units) : undefined) ?? 0
  if (tokens) return { ...tokens, searchUnits }
  return searchUnits > 0 ? { ...NO_USAGE, searchUnits, promptIsUnknown: true } : undefined
}

function tokensIn(counts: Counts): Usage | undefined {
  const output = maxCount(counts, 'completion_tokens', 'output_tokens')
  // Some providers fill in only the total and leave the prompt at zero.
  const input = maxCount(counts, 'prompt_tokens', 'input_tokens') || count(counts, 'total_tokens') - output
  return input > 0 ? { ...NO_USAGE, input, output } : undefined
}

/** Renders the counts of `docs/api.md: Rerank result`. */
export function writeRerankUsage(usage: Usage): string {
  const prompt = promptTokens(usage)
  return JSON.stringify({
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
  })
}
