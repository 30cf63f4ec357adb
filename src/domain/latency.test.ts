import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lawRuns } from '../../test/runner/tier.ts'
import { bucketBounds, bucketOf, LATENCY_BUCKETS, percentile } from './latency.ts'

test('every latency is within the bounds of its histogram bucket, and the buckets have no gaps', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 5_000_000 }), (ms) => {
      const { fromMs, beforeMs } = bucketBounds(bucketOf(ms))
      expect(ms).toBeGreaterThanOrEqual(fromMs)
      expect(ms).toBeLessThan(beforeMs)
    }),
    { numRuns: lawRuns(2_000) },
  )
  for (let bucket = 1; bucket < LATENCY_BUCKETS; bucket += 1)
    expect(bucketBounds(bucket).fromMs).toBe(bucketBounds(bucket - 1).beforeMs)
  expect(bucketBounds(LATENCY_BUCKETS - 1).fromMs).toBeGreaterThan(600_000)
})

test('a percentile of latencies from 16 ms to ten minutes is off by at most a tenth', () => {
  const latency = fc
    .double({ min: Math.log(16), max: Math.log(600_000), noNaN: true })
    .map((log) => Math.max(16, Math.round(Math.exp(log))))
  fc.assert(
    fc.property(
      fc.array(latency, { minLength: 1, maxLength: 60 }),
      fc.constantFrom(0.5, 0.95),
      (all, share) => {
        const counts = Array.from({ length: LATENCY_BUCKETS }, () => 0)
        for (const ms of all) counts[bucketOf(ms)]! += 1
        const sorted = all.toSorted((one, other) => one - other)
        const exact = sorted[Math.ceil(share * all.length) - 1] ?? 0
        expect(Math.abs((percentile(counts, share) ?? 0) - exact)).toBeLessThanOrEqual(exact / 10)
      },
    ),
    { numRuns: lawRuns(2_000) },
  )
  expect(percentile([], 0.5)).toBeNull()
})
