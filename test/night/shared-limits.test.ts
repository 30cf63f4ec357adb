import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { RedisPeers } from '../../src/limits/redis-peers.ts'
import {
  type CountingNode,
  untilConnected,
  limitStorm,
  maxWithin,
  uniqueLimit,
  stopNodes,
  threeNodes,
} from '../fixtures/counting-nodes.ts'
import { type RedisServer, startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'

const MILLION = 1_000_000
const AT_ONCE = 100

describe.skipIf(withoutRedis('limits over several nodes, for long'))('limits over three nodes', () => {
  let server: RedisServer
  let nodes: CountingNode[] = []
  beforeAll(async () => {
    server = await startRedisServer()
  })
  afterAll(() => server?.stop())
  beforeEach(async () => {
    nodes = await threeNodes(server.url)
  })
  afterEach(() => stopNodes(nodes))

  test.each([
    [100, 10_000],
    [600, 20_000],
    [20_000, 10_000],
  ])(
    'a rate limit over three nodes admits %i calls in %i ms, and no more, with 200 clients spread 90/5/5',
    async (most, windowMs) => {
      const { admitted, longestWaitMs } = await limitStorm(
        nodes,
        uniqueLimit(most, windowMs),
        200,
        3 * windowMs,
      )
      const reached = { all: admitted.length / (3 * most), most: maxWithin(admitted, windowMs) / most }
      console.log(`${most} in ${windowMs} ms:`, reached, { longestWaitMs: Math.round(longestWaitMs) })
      expect(reached.most).toBeLessThanOrEqual(1.01)
      expect(reached.all).toBeGreaterThanOrEqual(0.97)
    },
  )

  test('a rate limit over three nodes is exceeded by at most 20 %, and admits some calls, while Redis restarts repeatedly', async () => {
    await stopNodes(nodes)
    nodes = await threeNodes(server.url, { isPatient: false })
    const [most, windowMs] = [300, 4_000]
    const running = limitStorm(nodes, uniqueLimit(most, windowMs), 200, 3 * windowMs)
    await sleep(windowMs)
    await server.kill()
    const goneMs = performance.now()
    await sleep(windowMs)
    const backMs = performance.now()
    await server.restart()
    await untilConnected(nodes)
    expect(performance.now() - backMs).toBeLessThan(2_000)
    const { admitted } = await running
    expect(maxWithin(admitted, windowMs)).toBeLessThanOrEqual(1.2 * most)
    const alone = admitted.filter(({ askedMs, admittedMs }) => askedMs > goneMs && admittedMs < backMs)
    expect(alone.length).toBeGreaterThan(most / 2)
    expect(admitted.length).toBeGreaterThan(0.8 * 3 * most)
  })
})

test.skipIf(withoutRedis('a million windows'))(
  'rate limits of a million subjects take at most 100 bytes of Redis memory each, and are removed afterwards',
  async () => {
    const server = await startRedisServer()
    const peers = new RedisPeers({
      url: server.url,
      namespace: 'sluice:0123456789abcdef',
      node: 'one',
      names: () => ['one'],
      onReachability: () => {},
    })
    try {
      await peers.firstAttempt
      const usedBytes = async (): Promise<number> =>
        Number(/^used_memory:(\d+)/m.exec(String(await server.command(['INFO', 'memory'])))?.[1])
      const windowMs = 600_000
      const question = {
        max: 180,
        windowMs,
        known: 0,
        bucket: 0,
        used: 1,
        returned: 0,
        kept: 0,
        added: [],
        need: 0,
        want: 0,
      }
      const before = await usedBytes()
      for (let from = 0; from < MILLION; from += AT_ONCE) {
        const some = Array.from({ length: AT_ONCE }, (_, i) => ({
          name: 'relay requests',
          subject: `address ${from + i}`,
          max: 180,
          windowMs,
        }))
        // Late responses count too, because the request may have been executed.
        await Promise.all(some.map((counted) => peers.exchangePermits(counted, question).catch(() => {})))
      }
      const bytesEach = ((await usedBytes()) - before) / MILLION
      console.log(`${bytesEach.toFixed(1)} bytes for each of a million`)
      expect(bytesEach).toBeLessThanOrEqual(100)
      const keys = Number(await server.command(['DBSIZE']))
      expect(keys).toBeLessThanOrEqual(16_384 + 2)
      const expiries = await server.command(['INFO', 'keyspace'])
      expect(Number(/expires=(\d+)/.exec(String(expiries))?.[1])).toBeGreaterThanOrEqual(keys - 1)
    } finally {
      await peers.close()
      await server.stop()
    }
  },
)
