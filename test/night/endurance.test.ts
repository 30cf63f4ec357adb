import process from 'node:process'
import { expect, test } from 'vitest'
import { flat, soak } from '../operations/soak-run.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()
/** NIGHT_MINUTES makes it longer; a night has 480. */
const MINUTES = Number(process.env['NIGHT_MINUTES'] ?? 20)
const PER_SECOND = 200

test(`${PER_SECOND} requests a second with faults for ${MINUTES} minutes leave no holds, memory or connections behind (seed ${seed})`, {
  timeout: (MINUTES + 3) * 60_000,
}, async () => {
  const requests = MINUTES * 60 * PER_SECOND
  const report = await soak({ seed, warmUp: requests / 5, requests, perSecond: PER_SECOND })
  console.log(
    JSON.stringify({
      warm: report.warm,
      end: report.end,
      aborted: report.aborted,
      rejected: report.rejected,
      refused: report.refused,
    }),
  )
  expect(report.requests).toBe(requests)
  // On a shared machine a few requests may be refused for lack of CPU time.
  expect(report.refused).toBeLessThan(requests / 50)
  expect(flat(report)).toEqual([])
  expect(report.end.resident).toBeLessThan(report.warm.resident * 1.1)
})
