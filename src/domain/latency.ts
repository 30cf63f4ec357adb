/** Number of buckets of a histogram of latencies. */
export const LATENCY_BUCKETS = 60

/** Upper bound of the first bucket in milliseconds. */
const FIRST_END_MS = 16
/**
 * Ratio of a bucket's upper bound to that of the previous bucket. With it, the middle of a bucket deviates by
 * less than a tenth from every value in the bucket.
 */
const GROWTH = 1.2

/** Upper bounds of all buckets except the last, in whole milliseconds. The highest is about ten minutes. */
const ENDS: readonly number[] = Array.from({ length: LATENCY_BUCKETS - 1 }, (_, bucket) =>
  Math.round(FIRST_END_MS * GROWTH ** bucket),
)

/** Bounds of a bucket in milliseconds. The upper one is exclusive, and infinite for the last bucket. */
export function bucketBounds(bucket: number): { readonly fromMs: number; readonly beforeMs: number } {
  return {
    fromMs: bucket === 0 ? 0 : (ENDS[bucket - 1] ?? 0),
    beforeMs: ENDS[bucket] ?? Number.POSITIVE_INFINITY,
  }
}

/**
 * Serializes the number of calls in each bucket, as stored in sums of usage: `bucket:count ` for each bucket
 * with calls. Texts that are joined are the text of the sum, so that every database can add them up.
 */
export function serializeHistogram(counts: readonly number[]): string {
  let text = ''
  for (let bucket = 0; bucket < counts.length; bucket += 1)
    if (counts[bucket] !== 0) text += `${bucket}:${counts[bucket]} `
  return text
}

/** Adds the counts of a text of `serializeHistogram`, or of several that are joined, to counts by bucket. */
export function addHistogram(counts: number[], text: string): void {
  let bucket = 0
  let number = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === COLON) {
      bucket = number
      number = 0
    } else if (code === SPACE) {
      counts[bucket]! += number
      number = 0
    } else number = number * 10 + code - ZERO
  }
}

const COLON = 58
const SPACE = 32
const ZERO = 48

/** An empty histogram: no calls in any bucket. */
export function emptyHistogram(): number[] {
  return Array.from({ length: LATENCY_BUCKETS }, () => 0)
}

const LOG_GROWTH = Math.log(GROWTH)

/** The index of the bucket that contains a latency. */
export function bucketOf(ms: number): number {
  if (ms < FIRST_END_MS) return 0
  const near = Math.min(LATENCY_BUCKETS - 1, 1 + Math.floor(Math.log(ms / FIRST_END_MS) / LOG_GROWTH))
  // The bounds are rounded, so the bucket may be the one before or after.
  if (ms < (ENDS[near - 1] ?? 0)) return near - 1
  return ms >= (ENDS[near] ?? Number.POSITIVE_INFINITY) ? near + 1 : near
}

/**
 * The latency in milliseconds that the fraction `share` of the calls does not exceed, from the number of
 * calls in each bucket. Off by at most a tenth from 16 ms to ten minutes; null if there are no calls.
 */
export function percentile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let left = share * total
  const bucket = counts.findIndex((count) => count > 0 && (left -= count) <= 0)
  const { fromMs, beforeMs } = bucketBounds(bucket === -1 ? LATENCY_BUCKETS - 1 : bucket)
  if (!Number.isFinite(beforeMs)) return fromMs
  const last = beforeMs - 1
  // The harmonic mean deviates by the same percentage from both bounds.
  return Math.round(fromMs === 0 ? last / 2 : (2 * fromMs * last) / (fromMs + last))
}
