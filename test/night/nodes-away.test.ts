import { expect, test } from 'vitest'
import { startCluster } from '../fixtures/cluster.ts'
import { withoutCrashes } from '../fixtures/own-postgres.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { callWhileAway, warmAndCold } from '../nodes/bank-away.ts'

const NAME = 'PostgreSQL down for thirty seconds'

test.skipIf(withoutRedis(NAME) || withoutCrashes(NAME))(
  'while PostgreSQL is down, known keys are served, others get 503 in 2 s, and charges are reported 5 s after its return',
  { timeout: 180_000 },
  async () => {
    const cluster = await startCluster({ nodes: 3, configure: warmAndCold })
    try {
      cluster.upstream.script('m', { kind: 'whole' })
      const { warm, cold, backlogMs } = await callWhileAway(cluster, {
        forMs: 30_000,
        leave: () => cluster.postgres.crash(),
        comeBack: () => cluster.postgres.start(),
      })
      console.info({ warm: warm.length, cold: cold.length, backlogMs })
      expect(warm.filter(({ status }) => status !== 200)).toEqual([])
      for (const { status, retryAfter, tookMs } of cold) {
        expect(status).toBe(503)
        expect(Number(retryAfter)).toBeGreaterThan(0)
        expect(tookMs).toBeLessThan(2000)
      }
      expect(backlogMs).toBeLessThan(5000)
    } finally {
      await cluster.clear()
    }
  },
)
