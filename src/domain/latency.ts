/** Number of buckets of a histogram of latencies. */
export const LATENCY_BUCKETS = 16

/** Upper bound of the first bucket in milliseconds; each further bound is twice the previous one. */
const FIRST_END_MS = 32

/** Bounds of a bucket in milliseconds, excluding the upper one; the last bucket has no upper bound. */
export function bucketBounds(bucket: number): { readonly fromMs: number; readonly beforeMs: number } {
  return {
    fromMs: bucket === 0 ? 0 : FIRST_END_MS * 2 ** (bucket - 1),
    beforeMs: bucket === LATENCY_BUCKETS - 1 ? Number.POSITIVE_INFINITY : FIRST_END_MS * 2 ** bucket,
  }
}

/** The bucket of a latency. */
export function bucketOf(ms: number): number {
  if (ms < FIRST_END_MS) return 0
  return Math.min(LATENCY_BUCKETS - 1, 1 + Math.floor(Math.log2(ms / FIRST_END_MS)))
}

/**
 * The latency in milliseconds that the fraction `share` of the counted calls does not exceed, assuming an
 * even distribution within each bucket; null if there are no calls.
 */
export function percentile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let left = share * total
  for (const [bucket, count] of counts.entries()) {
    if (left > count) {
      left -= count
      continue
    }
    if (count === 0) continue
    const { fromMs, beforeMs } = bucketBounds(bucket)
    return Math.round(Number.isFinite(beforeMs) ? fromMs + ((beforeMs - fromMs) * left) / count : fromMs)
  }
  return bucketBounds(LATENCY_BUCKETS - 1).fromMs
}
