import { expect, test } from 'vitest'
import { CHARGES, reloadStorm } from '../operations/reload-storm.ts'

test('50 reloads in 60 s at 300 requests a second fail no request, and each is charged by one version of gateway.yaml', async () => {
  const report = await reloadStorm({ seconds: 60, reloads: 50, perSecond: 300 })
  expect(report.failed).toEqual([])
  expect(report.requests).toBe(18_000)
  expect(report.reloads).toBe(50)
  expect(report.refusedFiles).toBe(10)
  expect([...report.chargesByVersion.values()].map((charges) => [...charges])).toEqual(
    CHARGES.map((charge) => [charge]),
  )
  expect(report).toMatchObject({ unaccounted: 0, strays: 0 })
})
