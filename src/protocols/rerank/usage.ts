import { NO_USAGE, promptTokens, type Usage } from '../../domain/usage.ts'
import { asRecord } from '../json/record.ts'
import { type Counts, count, maxCount } from '../token-count.ts'
import type { ScannedObject } from '../json/scanned-object.ts'

const NONE: Counts = {}

/**
 * Reads the usage of a rerank upstream; undefined if it reports no tokens, as with providers that charge for
 * searches (`meta.billed_units.search_units`). Incredible counts are ignored. Sources, in order of
 * precedence:
 * - `usage`, with the prompt's share or only a total: whatever was not generated was read;
 * - `meta.tokens`, the tokens that the model read;
 * - `meta.billed_units`, the units that the provider charges for.
 */
export function readRerankUsage(reply: ScannedObject): Usage | undefined {
  const usage = asRecord(reply.value('usage')) ?? NONE
  const reported = asRecord(reply.value('meta')) ?? NONE
  const places = [usage, asRecord(reported['tokens']) ?? NONE, asRecord(reported['billed_units']) ?? NONE]
  return places.map(tokensIn).find((found) => found !== undefined)
}

function tokensIn(counts: Counts): Usage | undefined {
  const output = maxCount(counts, 'completion_tokens', 'output_tokens')
  // Some providers fill in only the total, and leave the prompt at zero.
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
