import { expect, test } from 'vitest'
import { flat, soak } from '../operations/soak-run.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()
/**
 * Requests before the first measurement: until then peak memory still grows, depending on when V8 collects
 * garbage.
 */
const WARM_UP = 50_000

test(`100,000 requests, some aborted or failed, leave no holds, memory or connections behind (seed ${seed})`, async () => {
  const report = await soak({ seed, warmUp: WARM_UP, requests: WARM_UP + 100_000 })
  console.log(
    JSON.stringify({
      warm: report.warm,
      end: report.end,
      aborted: report.aborted,
      rejected: report.rejected,
    }),
  )
  expect(report.aborted).toBeGreaterThan(13_500)
  expect(report.rejected).toBeGreaterThan(7_000)
  expect(report.refused).toBe(0)
  expect(flat(report)).toEqual([])
  expect(report.end.resident).toBeLessThan(report.warm.resident * 1.1)
})
