import { expect, test } from 'vitest'
import { flat, soak } from './soak-run.ts'

test('10,000 requests, one in ten aborted, one in twenty with an upstream in trouble, another with a picture that is rejected, leave nothing behind', async () => {
  const report = await soak({ seed: 20261120, warmUp: 2500, requests: 10_000 })
  expect(report.aborted).toBeGreaterThan(750)
  expect(report.rejected).toBeGreaterThan(400)
  expect(report.refused).toBe(0)
  expect(flat(report)).toEqual([])
}, 120_000)
