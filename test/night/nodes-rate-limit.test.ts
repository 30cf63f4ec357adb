import { describe, test } from 'vitest'
import { patientProgram } from '../fixtures/patient-program.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { expectKept } from '../nodes/kept-limit.ts'
import { exceedLimit, type LimitsReport } from '../nodes/limits-run.ts'

describe.skipIf(withoutRedis('a limit over three nodes'))('a limit over three nodes', () => {
  test('a rate limit over three nodes admits between 97 % and 101 % of the limit, even if calls are spread unevenly', async () => {
    const root = await patientProgram()
    const run = (windowMs: number): Promise<LimitsReport> =>
      exceedLimit({ requests: 200, windowMs, clients: [45, 3, 3], windows: 3, root })
    let windowMs = 2000
    let report = await run(windowMs)
    // A machine that takes most of a window for this number of calls gets longer windows.
    while (report.fillMs > windowMs / 2) {
      windowMs = Math.ceil(4 * Math.min(report.fillMs, 2 * windowMs))
      report = await run(windowMs)
    }
    console.info(report)
    expectKept(report)
  })
})
