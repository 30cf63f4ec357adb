import { expect, test } from 'vitest'
import { CHARGES, reloadStorm } from './reload-storm.ts'

test('8 readings in 10 s at 300 requests a second: none fails, and each is charged by exactly one version', async () => {
  const report = await reloadStorm({ seconds: 10, reloads: 8, perSecond: 300 })
  expect(report.failed).toEqual([])
  expect(report.requests).toBe(3000)
  expect(report.reloads).toBe(8)
  expect(report.refusedFiles).toBe(1)
  expect([...report.chargesByVersion.values()].map((charges) => [...charges])).toEqual(
    CHARGES.map((charge) => [charge]),
  )
  expect(report).toMatchObject({ unaccounted: 0, strays: 0 })
}, 60_000)
