/** Number of buckets of a histogram of latencies. */
export const LATENCY_BUCKETS = 60

/** Upper bound of the first bucket in milliseconds. */
const FIRST_END_MS = 16
/** Ratio of a bound to the previous one: the middle of a bucket is less than a tenth from everything in it. */
const GROWTH = 1.2

/** Upper bounds of all buckets but the last one, in whole milliseconds; the last of them is ten minutes. */
const ENDS: readonly number[] = Array.from({ length: LATENCY_BUCKETS - 1 }, (_, bucket) =>
  Math.round(FIRST_END_MS * GROWTH ** bucket),
)

/** Bounds of a bucket in milliseconds, excluding the upper one; the last bucket has no upper bound. */
export function bucketBounds(bucket: number): { readonly fromMs: number; readonly beforeMs: number } {
  return {
    fromMs: bucket === 0 ? 0 : (ENDS[bucket - 1] ?? 0),
    beforeMs: ENDS[bucket] ?? Number.POSITIVE_INFINITY,
  }
}

const LOG_GROWTH = Math.log(GROWTH)

/** The bucket of a latency. */
export function bucketOf(ms: number): number {
  if (ms < FIRST_END_MS) return 0
  const near = Math.min(LATENCY_BUCKETS - 1, 1 + Math.floor(Math.log(ms / FIRST_END_MS) / LOG_GROWTH))
  // Bounds are rounded, so that the bucket may be the one before or after.
  if (ms < (ENDS[near - 1] ?? 0)) return near - 1
  return ms >= (ENDS[near] ?? Number.POSITIVE_INFINITY) ? near + 1 : near
}

/**
 * The latency in milliseconds that the fraction `share` of the counted calls does not exceed, off by at most a
 * tenth from 16 ms to ten minutes; null if there are no calls.
 */
export function percentile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let left = share * total
  const bucket = counts.findIndex((count) => count > 0 && (left -= count) <= 0)
  const { fromMs, beforeMs } = bucketBounds(bucket === -1 ? LATENCY_BUCKETS - 1 : bucket)
  if (!Number.isFinite(beforeMs)) return fromMs
  const last = beforeMs - 1
  // The harmonic mean is equally far, as a fraction, from both ends.
  return Math.round(fromMs === 0 ? last / 2 : (2 * fromMs * last) / (fromMs + last))
}
