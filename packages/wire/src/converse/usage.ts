import { NO_USAGE } from '../usage.ts'
import { asRecord } from '../json/record.ts'
import { promptOnly, type ReportedUsage } from '../reported-usage.ts'
import { count, maxCount, toCount } from '../token-count.ts'

/**
 * Reads a usage, whose counts are disjoint: tokens read from and written to a cache are not part of the
 * input; thoughts are part of the output. Some servers include cached tokens in the input; the total shows
 * which is the case. Returns undefined without an input, and only the prompt without an output. Written
 * tokens without a split by lifetime are of the five-minute kind.
 */
export function readConverseUsage(value: unknown): ReportedUsage | undefined {
  const usage = asRecord(value)
  const stated = toCount(usage?.['inputTokens'])
  if (!usage || stated === undefined) return undefined
  const output = count(usage, 'outputTokens')
  const cacheRead = maxCount(usage, 'cacheReadInputTokens', 'cacheReadInputTokenCount')
  const written = maxCount(usage, 'cacheWriteInputTokens', 'cacheWriteInputTokenCount')
  const cached = cacheRead + written
  const isInside = cached > 0 && cached <= stated && toCount(usage['totalTokens']) === stated + output
  const cacheWrite1h = Math.min(writtenForAnHour(usage['cacheDetails']), written)
  const counts = {
    ...NO_USAGE,
    input: isInside ? stated - cached : stated,
    cacheRead,
    cacheWrite5m: written - cacheWrite1h,
    cacheWrite1h,
    output,
  }
  return toCount(usage['outputTokens']) === undefined ? promptOnly(counts) : counts
}

function writtenForAnHour(details: unknown): number {
  if (!Array.isArray(details)) return 0
  return details
    .map((detail: unknown) => asRecord(detail) ?? {})
    .filter(({ ttl }) => ttl === '1h')
    .reduce((sum, detail) => sum + count(detail, 'inputTokens'), 0)
}
