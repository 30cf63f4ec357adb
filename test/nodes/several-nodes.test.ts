import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { CountedLimit } from '../../src/limits/rate-counter.ts'
import type { PermitPeers } from '../../src/limits/peers.ts'
import { SharedRateCounter } from '../../src/limits/shared-rate-counter.ts'
import {
  type CountingNode,
  untilConnected,
  limitStorm,
  maxWithin,
  PATIENT,
  patientCounter,
  uniqueLimit as limit,
  stopNodes,
  threeNodes,
} from '../fixtures/counting-nodes.ts'
import { type RedisServer, startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'

type Exchanged = ReturnType<PermitPeers['exchangePermits']>

/** A timeout of 50 ms that also waits for the event loop, which a busy machine may delay. */
async function tooLate(): Promise<string> {
  await sleep(50)
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve))
  return 'too late'
}

/** Peers whose exchanges are executed by `run`. */
function through(peers: PermitPeers, run: (exchange: () => Exchanged) => Exchanged): PermitPeers {
  return {
    get isReachable() {
      return peers.isReachable
    },
    get isRefilling() {
      return peers.isRefilling
    },
    get nodes() {
      return peers.nodes
    },
    get generation() {
      return peers.generation
    },
    exchangePermits: (...asked) => run(() => peers.exchangePermits(...asked)),
  }
}

describe.skipIf(withoutRedis('limits over several nodes'))('limits over three nodes', () => {
  let server: RedisServer
  let nodes: CountingNode[] = []
  /** Milliseconds that the nodes' clock is ahead. */
  let aheadMs = 0
  beforeAll(async () => {
    server = await startRedisServer()
  })
  afterAll(() => server?.stop())
  beforeEach(async () => {
    aheadMs = 0
    nodes = await threeNodes(server.url, { nowMs: () => performance.now() + aheadMs })
  })
  afterEach(async () => {
    server.resume()
    await stopNodes(nodes)
  })

  /** The number of calls that a node admits now. */
  const burst = async ({ counts }: CountingNode, counted: CountedLimit, calls: number): Promise<number> => {
    const verdicts = await Promise.all(Array.from({ length: calls }, async () => counts.take(counted)))
    return verdicts.filter(({ allowed }) => allowed).length
  }
  const bursts = async (counted: CountedLimit, calls: number): Promise<number> => {
    const each = await Promise.all(nodes.map((node) => burst(node, counted, calls)))
    return each.reduce((sum, one) => sum + one, 0)
  }
  /** Waits until this much of the limit is left in Redis. */
  const untilLeft = async (counted: CountedLimit, left: number): Promise<void> => {
    const [{ peers }] = nodes as [CountingNode]
    const observer = patientCounter(peers)
    await expect.poll(async () => (await observer.check(counted)).remaining).toBe(left)
    await observer.close()
  }

  test('three nodes together admit 97 % to 101 % of a rate limit, with 200 clients that are spread unevenly', async () => {
    const [most, windowMs] = [200, 1_500]
    const counts: number[] = []
    // A machine that halts for a moment admits less in that time, but never more.
    while (counts.length < 5 && (counts.at(-1) ?? 0) < 0.97 * 2 * most) {
      const { admitted } = await limitStorm(nodes, limit(most, windowMs), 200, 2 * windowMs)
      expect(maxWithin(admitted, windowMs)).toBeLessThanOrEqual(1.01 * most)
      counts.push(admitted.length)
    }
    expect(Math.max(...counts)).toBeGreaterThanOrEqual(0.97 * 2 * most)
  })

  test('three nodes together admit exactly the rate limit when all calls arrive at one moment', async () => {
    expect(await bursts(limit(100, 60_000), 100)).toBe(100)
  })

  test('a node returns unused permits of a shared rate limit that another node needs', async () => {
    const counted = limit(40, 60_000)
    for (const { counts } of nodes) await counts.take(counted)
    const [first] = nodes as [CountingNode]
    let sum = 3
    // The permits are unused by then.
    aheadMs = 6_000
    const admitted = async (): Promise<number> => (sum += await burst(first, counted, 40))
    await expect.poll(admitted).toBe(40)
  })

  test('calls far below a shared rate limit need no request to Redis', async () => {
    const counted = limit(6_000, 60_000)
    const [{ peers }] = nodes as [CountingNode]
    const exchanges = new Set<Promise<unknown>>()
    const watched = through(peers, (exchange) => {
      const running = exchange()
      exchanges.add(running)
      return running
    })
    const counts = patientCounter(watched, () => performance.now() + aheadMs)
    let waited = 0
    for (let i = 0; i < 100; i++) {
      const verdict = counts.take(counted)
      if (verdict instanceof Promise) waited += 1
      await verdict
      // Redis answers before the next call, five milliseconds later.
      await Promise.all(exchanges)
      aheadMs += 5
    }
    expect(waited).toBeLessThanOrEqual(5)
    await counts.close()
  })

  test('while Redis is down, three nodes apply a rate limit in shares without waiting; later they share it again', async () => {
    const counted = limit(90, 60_000)
    await server.kill()
    const startedMs = performance.now()
    expect(await bursts(counted, 90)).toBe(90)
    expect(performance.now() - startedMs).toBeLessThan(PATIENT.exchangeMs / 2)
    const [one] = nodes as [CountingNode]
    expect(await burst(one, counted, 10)).toBe(0)
    const other = limit(90, 60_000)
    expect(await burst(one, other, 90)).toBe(30)
    await server.restart()
    await untilConnected(nodes)
    await untilLeft(counted, 0)
    await untilLeft(other, 60)
    expect(await burst(one, other, 90)).toBe(60)
    expect(await bursts(counted, 30)).toBe(0)
  })

  test('a call waits at most 50 ms for a silent Redis to check a shared rate limit', async () => {
    await stopNodes(nodes)
    nodes = await threeNodes(server.url, { isPatient: false })
    const counted = limit(100_000, 60_000)
    await bursts(counted, 5)
    await server.pause()
    const others = Array.from({ length: 20 }, () => limit(1_000, 60_000))
    const [{ counts }] = nodes as [CountingNode]
    let waited = 0
    for (const other of others) {
      const verdict = counts.take(other)
      if (verdict instanceof Promise) waited += 1
      expect(await Promise.race([verdict, tooLate()])).toMatchObject({ allowed: true })
    }
    // The first call detects the silence, and the others do not wait.
    expect(waited).toBeLessThanOrEqual(1)
    server.resume()
    await untilConnected(nodes)
    expect((await counts.take(counted)).allowed).toBe(true)
  })

  test('a call waits at most 50 ms for earlier requests to Redis before its shared rate limit is checked', async () => {
    const [{ peers }] = nodes as [CountingNode]
    // A slow connection: two exchanges in sequence take longer than a call may wait.
    const far = through(peers, async (exchange) => {
      await sleep(32)
      return exchange()
    })
    const counts = new SharedRateCounter(far)
    const counted = limit(30, 60_000)
    const first = counts.take(counted)
    await sleep(5)
    // More calls than the first exchange grants permits for.
    const others = Promise.all(Array.from({ length: 5 }, async () => counts.take(counted)))
    expect(await Promise.race([others, tooLate()])).toHaveLength(5)
    await first
    await counts.close()
  })

  test('three nodes together admit no more than the rate limit while Redis restarts empty', async () => {
    const counted = limit(90, 60_000)
    await server.kill()
    const back = sleep(500)
      .then(() => server.restart())
      .then(() => untilConnected(nodes))
      .then(() => untilLeft(counted, 0))
    const { admitted } = await limitStorm(nodes, counted, 60, back)
    expect(admitted.length).toBeLessThanOrEqual(90)
  })

  test('after all data in Redis are deleted, nodes restore the calls that they had admitted to a shared rate limit', async () => {
    const counted = limit(90, 60_000)
    for (const node of nodes) expect(await burst(node, counted, 25)).toBe(25)
    const before = nodes.map(({ peers }) => peers.generation)
    await server.command(['FLUSHALL'])
    const noticed = (): boolean => nodes.every(({ peers }, i) => peers.generation !== before[i])
    await expect.poll(noticed).toBe(true)
    await untilConnected(nodes)
    expect(await bursts(counted, 90)).toBeLessThanOrEqual(15)
  })

  test('tokens that one node counts against a shared token limit are counted once, and are known to other nodes', async () => {
    const counted = { ...limit(1_000, 60_000), name: 'key tokens' }
    const [one, other] = nodes as [CountingNode, CountingNode]
    expect((await one.counts.check(counted)).allowed).toBe(true)
    one.counts.add(counted, 1_500)
    expect((await one.counts.check(counted)).allowed).toBe(false)
    await expect.poll(async () => (await other.counts.check(counted)).allowed).toBe(false)
  })

  test('unused permits of a shared rate limit return from a node that stops', async () => {
    const counted = limit(400, 60_000)
    const [one, other] = nodes as [CountingNode, CountingNode]
    expect(await burst(one, counted, 50)).toBe(50)
    await one.counts.close()
    expect(await burst(other, counted, 400)).toBe(350)
  })

  test('permits of a shared rate limit that a node is granted while it stops return to the others', async () => {
    const counted = limit(400, 60_000)
    const [one, other] = nodes as [CountingNode, CountingNode]
    const { promise: isStopping, resolve: stop } = Promise.withResolvers<void>()
    const late = through(one.peers, async (exchange) => {
      const response = await exchange()
      await isStopping
      return response
    })
    const counts = patientCounter(late)
    const admitted = counts.take(counted)
    const closed = counts.close()
    stop()
    expect((await admitted).allowed).toBe(true)
    await closed
    expect(await burst(other, counted, 400)).toBe(399)
  })
})
