import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { type Cluster, startCluster } from '../fixtures/cluster.ts'
import { token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { patientWithPostgres } from '../fixtures/patient-program.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { callWhileAway, warmAndCold } from './bank-away.ts'

describe.skipIf(withoutRedis('three nodes whose Redis is in trouble'))(
  'three nodes whose Redis fails',
  () => {
    let cluster: Cluster
    beforeAll(async () => {
      cluster = await startCluster({
        nodes: 3,
        configure: (upstream) => {
          const { users = [], ...rest } = warmAndCold(upstream)
          const limited = user(3, 'ben', [token('limited')], { rate_limit: { requests: 6, window: '1s' } })
          return { ...rest, users: [...users, limited] }
        },
        root: await patientWithPostgres(),
      })
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

    test.each<[string, RegExp, readonly string[], readonly string[]]>([
      [
        'is full',
        /cannot be used \(.*maxmemory/,
        ['CONFIG', 'SET', 'maxmemory', '1'],
        ['CONFIG', 'SET', 'maxmemory', '0'],
      ],
      [
        'has become a replica',
        /cannot be used \(.*read only replica/,
        ['REPLICAOF', '127.0.0.1', '1'],
        ['REPLICAOF', 'NO', 'ONE'],
      ],
    ])(
      "a node whose Redis %s counts as one without Redis, and goes on to serve its share of a user's limit",
      { timeout: 300_000 },
      async (_, reason, refuseWrites, takeWrites) => {
        const node = cluster.fleet.node(0)
        const isConnected = async (): Promise<string | undefined> => {
          const { text } = await call(node.url, undefined, { method: 'GET', path: '/metrics' })
          return /^sluice_redis_connected (\d)$/m.exec(text)?.[1]
        }
        // A reason is logged once until the server can be used again.
        await expect.poll(isConnected, { timeout: 60_000 }).toBe('1')
        await cluster.redis.command(refuseWrites)
        await expect.poll(() => node.logs(), { timeout: 60_000 }).toMatch(reason)
        expect(await isConnected()).toBe('0')
        const statuses: number[] = []
        // Twice the limit of all nodes, of which this one has a third a second.
        while (statuses.filter((status) => status === 200).length < 12) {
          const { status, headers } = await call(node.url, ask('m'), { key: 'limited' })
          statuses.push(status)
          if (status === 200) continue
          // Whoever waits as a refusal says is served. The test before may have used the share of this second.
          expect([status, statuses.at(-2) ?? 200]).toEqual([429, 200])
          await sleep(Number(headers['retry-after']) * 1_000)
        }
        await cluster.redis.command(takeWrites)
        await expect.poll(isConnected, { timeout: 60_000 }).toBe('1')
      },
    )
  },
)
