import process from 'node:process'
import { test } from 'vitest'
import { withoutRedis } from '../equipment/redis-server.ts'
import { expectExactWrites } from './exact-writes.ts'
import { writeWhileCharging } from './writes-and-charges.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const NAME = 'management writes beside charges'

test.skipIf(withoutRedis(NAME))(
  'quotas set, tokens switched and deleted on three nodes while 200 calls are charged: each charge counts once, after the write or before',
  { timeout: 60_000 },
  async () => {
    console.info(`seed ${SEED} (SEED=${SEED} repeats the calls)`)
    const report = await writeWhileCharging({ nodes: 3, charges: 200, writes: 40, seed: SEED })
    console.info({ complete: report.complete, writes: report.writes, perSecond: report.perSecond })
    expectExactWrites(report)
  },
)
