import { describe, expect, test } from 'vitest'
import { withoutCrashes } from '../fixtures/own-postgres.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import {
  crashPostgres,
  endConnections,
  killNodes,
  type FaultInjection,
  disconnectPostgres,
  injectRedisFaults,
} from '../nodes/fault-injection.ts'
import { nodesStorm } from '../nodes/nodes-storm.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()
const NAME = 'load with faults on three nodes'

const STORMS: readonly (readonly [string, readonly FaultInjection[]])[] = [
  ['kills', [killNodes]],
  ['kills, while PostgreSQL crashes and is away for 2 s', [killNodes, crashPostgres(8_000, 2_000)]],
  ['PostgreSQL is away for 30 s', [crashPostgres(5_000, 30_000)]],
  [
    'kills, while the cable to PostgreSQL is pulled for 10 s',
    [killNodes, disconnectPostgres(10_000, 10_000)],
  ],
  ['PostgreSQL ends a connection every 100 ms', [endConnections]],
  ['kills, while Redis has every trouble', [killNodes, injectRedisFaults]],
]

describe.skipIf(withoutRedis(NAME) || withoutCrashes(NAME))('load with faults on three nodes', () => {
  test.each(STORMS)(
    `three nodes under load with faults, %s, lose or double no charge, overdraw nothing and leave no lease (seed ${seed})`,
    { timeout: 300_000 },
    async (_, faults) => {
      const report = await nodesStorm({ seed, seconds: 45, clientsEach: 32, faults })
      console.info(report)
      expect(report.broken).toEqual([])
      expect(report.complete).toBeGreaterThan(1000)
    },
  )
})
