import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { patientProgram } from '../fixtures/patient-program.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { expectKept } from '../nodes/kept-limit.ts'
import { exceedLimit } from '../nodes/limits-run.ts'

describe.skipIf(withoutRedis('a limit over three nodes'))('a limit over three nodes', () => {
  test.each([
    [180, 10, 10],
    [67, 67, 66],
  ])(
    'a rate limit over three nodes with %i, %i and %i clients admits between 97 % and 101 % of the limit',
    { timeout: 180_000 },
    async (...clients) => {
      const report = await exceedLimit({
        requests: 1000,
        windowMs: 10_000,
        clients,
        windows: 5,
        root: await patientProgram(),
      })
      console.info(report)
      expect(report.refused).toBeGreaterThan(1000)
      expectKept(report)
    },
  )

  test('a rate limit over three nodes that lose Redis is applied in shares: exceeded by little, and never zero', {
    timeout: 60_000,
  }, async () => {
    const report = await exceedLimit({
      requests: 200,
      windowMs: 2000,
      clients: [16, 16, 16],
      windows: 4,
      async meanwhile({ redis }) {
        await sleep(2500)
        await redis.kill()
        await sleep(3000)
        await redis.restart()
      },
    })
    console.info(report)
    expect(report.fullest).toBeLessThanOrEqual(1.2)
    for (const admitted of report.byWindow) expect(admitted).toBeGreaterThan(0)
  })

  test('a rate limit over three nodes without Redis is applied in shares, and never exceeded', {
    timeout: 60_000,
  }, async () => {
    const report = await exceedLimit({
      requests: 201,
      windowMs: 2000,
      clients: [16, 16, 16],
      windows: 3,
      hasRedis: false,
    })
    console.info(report)
    expect(report.fullest).toBeLessThanOrEqual(1)
    expect(report.fullest).toBeGreaterThan(0.9)
  })
})
