import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { CountedLimit } from '../../src/limits/limit-counter.ts'
import type { Peers } from '../../src/limits/peers.ts'
import { SharedCounter } from '../../src/limits/shared-counter.ts'
import {
  type CountingNode,
  untilConnected,
  limitStorm,
  maxWithin,
  uniqueLimit as limit,
  stopNodes,
  threeNodes,
} from '../equipment/counting-nodes.ts'
import { type RedisServer, startRedisServer, withoutRedis } from '../equipment/redis-server.ts'

/** A timeout of 50 ms that also waits for the event loop, which a busy machine may delay. */
async function tooLate(): Promise<string> {
  await sleep(50)
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve))
  return 'too late'
}

describe.skipIf(withoutRedis('limits over several nodes'))('limits over three nodes', () => {
  let server: RedisServer
  let nodes: CountingNode[] = []
  let alone = 0
  beforeAll(async () => {
    server = await startRedisServer()
  })
  afterAll(() => server?.stop())
  beforeEach(async () => {
    alone = 0
    nodes = await threeNodes(server.url, () => (alone += 1))
  })
  afterEach(async () => {
    server.resume()
    await stopNodes(nodes)
  })

  /** Number of calls that a node admits now. */
  const burst = async ({ counts }: CountingNode, counted: CountedLimit, calls: number): Promise<number> => {
    const verdicts = await Promise.all(Array.from({ length: calls }, async () => counts.take(counted)))
    return verdicts.filter(({ allowed }) => allowed).length
  }
  const bursts = async (counted: CountedLimit, calls: number): Promise<number> => {
    const each = await Promise.all(nodes.map((node) => burst(node, counted, calls)))
    return each.reduce((sum, one) => sum + one, 0)
  }

  test('admit 97 % to 101 % of the limit, with 200 clients that are spread unevenly', async () => {
    const [most, windowMs] = [200, 1_500]
    const { admitted: through } = await limitStorm(nodes, limit(most, windowMs), 200, 2 * windowMs)
    // On a machine too busy for Redis, nodes cannot add up their shares.
    const slack = alone === 0 ? 1.01 : 5 / 3
    expect(maxWithin(through, windowMs)).toBeLessThanOrEqual(slack * most)
    expect(through.length).toBeGreaterThanOrEqual(0.97 * 2 * most)
  })

  test('admit the whole limit once, when all calls come at one moment', async () => {
    const earlier = alone
    const admitted = await bursts(limit(100, 60_000), 100)
    // On a machine too busy for Redis, nodes cannot add up their shares.
    if (alone === earlier) expect(admitted).toBe(100)
    else expect(admitted).toBeLessThanOrEqual((5 / 3) * 100)
  })

  test('return permits that another node needs', async () => {
    const counted = limit(40, 8_000)
    for (const { counts } of nodes) await counts.take(counted)
    await sleep(300)
    const [first] = nodes
    let sum = 3
    for (let i = 0; i < 20 && sum < 40; i++) {
      sum += await burst(first!, counted, 40)
      await sleep(200)
    }
    expect(sum).toBe(40)
  })

  test('answer without a request to Redis where the limit is far', async () => {
    const counted = limit(6_000, 60_000)
    const [{ counts }] = nodes as [CountingNode]
    await counts.take(counted)
    await sleep(50)
    let waited = 0
    for (let i = 0; i < 100; i++) {
      const verdict = counts.take(counted)
      if (verdict instanceof Promise) waited += 1
      await verdict
      await sleep(5)
    }
    expect(waited).toBeLessThanOrEqual(5)
  })

  test('are shares when the server is killed, with no call waiting for it; and whole again when it is back', async () => {
    const counted = limit(90, 60_000)
    await server.kill()
    const startedMs = performance.now()
    expect(await bursts(counted, 90)).toBe(90)
    expect(performance.now() - startedMs).toBeLessThan(5_000)
    const [one] = nodes as [CountingNode]
    expect(await burst(one, counted, 10)).toBe(0)
    const other = limit(90, 60_000)
    expect(await burst(one, other, 90)).toBe(30)
    await server.restart()
    await untilConnected(nodes)
    // Waits until the calls admitted meanwhile are reported.
    await sleep(300)
    const earlier = alone
    const rest = await burst(one, other, 90)
    // A busy machine may be too late for Redis: then the limit is a share again, of the rest known at the
    // last exchange.
    if (alone === earlier) expect(rest).toBe(60)
    else expect(rest).toBeLessThanOrEqual(60)
    const before = alone
    const more = await bursts(counted, 30)
    expect(more).toBeLessThanOrEqual(alone === before ? 0 : 20)
  })

  test.each(['SIGSTOP', 'DEBUG SLEEP'])('wait no longer than 50 ms for a silent server: %s', async (how) => {
    const counted = limit(100_000, 60_000)
    await bursts(counted, 5)
    if (how === 'SIGSTOP') server.pause()
    else void server.command(['DEBUG', 'SLEEP', '1.5']).catch(() => {})
    await sleep(20)
    const others = Array.from({ length: 20 }, () => limit(1_000, 60_000))
    const [{ counts }] = nodes as [CountingNode]
    let waited = 0
    for (const other of others) {
      const verdict = counts.take(other)
      if (verdict instanceof Promise) waited += 1
      expect(await Promise.race([verdict, tooLate()])).toMatchObject({ allowed: true })
    }
    // The first call detects the silence, and the others do not wait.
    expect(waited).toBeLessThanOrEqual(4)
    server.resume()
    await untilConnected(nodes)
    await sleep(1_500)
    expect((await counts.take(counted)).allowed).toBe(true)
  })

  test('wait no longer than 50 ms in the queue for Redis', async () => {
    const [{ peers }] = nodes as [CountingNode]
    // A slow connection: two exchanges in sequence take longer than a call may wait.
    const far: Peers = {
      isReachable: true,
      isRefilling: false,
      nodes: 3,
      get generation() {
        return peers.generation
      },
      async exchange(...asked) {
        await sleep(32)
        return peers.exchange(...asked)
      },
    }
    const counts = new SharedCounter(far)
    const counted = limit(30, 60_000)
    const first = counts.take(counted)
    await sleep(5)
    // More calls than the first exchange grants permits for.
    const others = Promise.all(Array.from({ length: 5 }, async () => counts.take(counted)))
    expect(await Promise.race([others, tooLate()])).toHaveLength(5)
    await first
    await counts.close()
  })

  test('admit no more than the limit while the server comes back empty', async () => {
    const counted = limit(90, 60_000)
    await server.kill()
    const storm = limitStorm(nodes, counted, 60, 2_500)
    await sleep(500)
    await server.restart()
    const { admitted: through } = await storm
    expect(through.length).toBeLessThanOrEqual(90)
  })

  test('restore the admitted calls after a flush', async () => {
    const counted = limit(90, 60_000)
    for (const node of nodes) expect(await burst(node, counted, 25)).toBe(25)
    await server.command(['FLUSHALL'])
    await sleep(700)
    expect(await bursts(counted, 90)).toBeLessThanOrEqual(15)
  })

  test('neither count spent tokens twice nor overlook those of another node', async () => {
    const counted = { ...limit(1_000, 60_000), name: 'key tokens' }
    const [one, other] = nodes as [CountingNode, CountingNode]
    expect((await one.counts.check(counted)).allowed).toBe(true)
    one.counts.add(counted, 1_500)
    expect((await one.counts.check(counted)).allowed).toBe(false)
    await sleep(300)
    expect((await other.counts.check(counted)).allowed).toBe(false)
  })

  test('get back the unused permits of a node that stops', async () => {
    const counted = limit(400, 60_000)
    const [one, other] = nodes as [CountingNode, CountingNode]
    expect(await burst(one, counted, 50)).toBe(50)
    await one.counts.close()
    expect(await burst(other, counted, 400)).toBe(350)
  })
})
