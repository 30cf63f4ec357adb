import { readInclusiveUsage } from '../inclusive-usage.ts'
import { asRecord } from '../json/record.ts'
import type { ReportedUsage } from '../reported-usage.ts'
import { toCount } from '../token-count.ts'
import { isSearch } from './search-item.ts'

/**
 * Reads the usage of a response: cached tokens, read and written, are part of its input, reasoning is part of
 * its output. Searches are those that `tool_usage` counts, otherwise the items of searches, of which a stream
 * passes its count so far. Undefined without usage.
 */
export function usageOf(
  response: Readonly<Record<string, unknown>>,
  toldSearches = 0,
): ReportedUsage | undefined {
  const usage = readInclusiveUsage(response['usage'])
  if (!usage) return undefined
  const counted = toCount(asRecord(asRecord(response['tool_usage'])?.['web_search'])?.['num_requests'])
  const webSearches = counted ?? Math.max(searchesIn(response['output']), usage.webSearches, toldSearches)
  return { ...usage, webSearches }
}

function searchesIn(output: unknown): number {
  return Array.isArray(output) ? output.filter(isSearch).length : 0
}
