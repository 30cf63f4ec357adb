import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, startCluster } from '../fixtures/cluster.ts'
import { patientWithPostgres } from '../fixtures/patient-program.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { callWhileAway, warmAndCold } from './bank-away.ts'

describe.skipIf(withoutRedis('three nodes whose Redis is in trouble'))(
  'three nodes whose Redis fails',
  () => {
    let cluster: Cluster
    beforeAll(async () => {
      cluster = await startCluster({ nodes: 3, configure: warmAndCold, root: await patientWithPostgres() })
      cluster.upstream.script('m', { kind: 'whole' })
    })
    afterAll(() => cluster?.clear())

    test.each<[string, (cluster: Cluster) => unknown, (cluster: Cluster) => unknown]>([
      ['forgets everything', ({ redis }) => redis.command(['FLUSHALL']), () => {}],
      ['is killed', ({ redis }) => redis.kill(), ({ redis }) => redis.restart()],
      [
        'is out of reach',
        ({ redisProxy: redisCable }) => redisCable.disconnect(),
        ({ redisProxy: redisCable }) => redisCable.reconnect(),
      ],
      [
        'sleeps',
        ({ redis }) => void redis.command(['DEBUG', 'SLEEP', '1']).catch(() => {}),
        () => sleep(100),
      ],
    ])(
      'three nodes whose Redis %s serve all keys, and charge as usual',
      { timeout: 300_000 },
      async (_, leave, comeBack) => {
        const report = await callWhileAway(cluster, {
          forMs: 500,
          leave: () => leave(cluster),
          comeBack: () => comeBack(cluster),
        })
        expect(report.warm.length).toBeGreaterThan(10)
        const unserved = [...report.warm, ...report.cold].filter(({ status }) => status !== 200)
        expect(unserved).toEqual([])
        expect(report.unreported).toBe(0)
      },
    )
  },
)
