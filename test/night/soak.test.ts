import { expect, test } from 'vitest'
import { flat, soak } from '../operations/soak-run.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()

test(`100,000 requests, one in ten aborted, leave nothing behind (seed ${seed})`, async () => {
  const report = await soak({ seed, warmUp: 20_000, requests: 100_000 })
  console.log(JSON.stringify({ warm: report.warm, end: report.end, aborted: report.aborted }))
  expect(report.aborted).toBeGreaterThan(9000)
  expect(flat(report)).toEqual([])
  expect(report.end.resident).toBeLessThan(report.warm.resident * 1.1)
})
