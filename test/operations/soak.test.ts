import { expect, test } from 'vitest'
import { flat, soak } from './soak-run.ts'

test('10,000 requests, one in ten aborted, leave nothing behind', async () => {
  const report = await soak({ seed: 20261120, warmUp: 2500, requests: 10_000 })
  expect(report.aborted).toBeGreaterThan(800)
  expect(flat(report)).toEqual([])
}, 120_000)
