import { describe, test } from 'vitest'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { expectExactWrites } from '../nodes/exact-writes.ts'
import { writeWhileCharging } from '../nodes/writes-and-charges.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()

describe.skipIf(withoutRedis('management writes beside charges'))('management writes beside charges', () => {
  test.each([1, 3])(
    `on %i nodes, changes of an account at twenty a second lose or double none of its 1,000 charges (seed ${seed})`,
    { timeout: 300_000 },
    async (nodes) => {
      const report = await writeWhileCharging({ nodes, charges: 1000, writes: 400, seed })
      console.info({ complete: report.complete, writes: report.writes, perSecond: report.perSecond })
      expectExactWrites(report)
    },
  )
})
