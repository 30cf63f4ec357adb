import { readInclusiveUsage } from '../inclusive-usage.ts'
import { asRecord } from '../json/record.ts'
import type { ReportedUsage } from '../reported-usage.ts'
import { toCount } from '../token-count.ts'

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

/** The items of a response that are searches: pages that are opened or searched for a word are none. */
function searchesIn(output: unknown): number {
  if (!Array.isArray(output)) return 0
  return output.filter((value) => {
    const item = asRecord(value)
    return (
      item?.['type'] === 'web_search_call' && (asRecord(item['action'])?.['type'] ?? 'search') === 'search'
    )
  }).length
}
