import process from 'node:process'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { RedisAnnouncements } from '../../src/cluster/redis-announcements.ts'
import { SharedSemaphore } from '../../src/limits/semaphore.ts'
import { NodeMessages } from '../../src/store/node-messages.ts'
import { type CountingNode, PATIENT, stopNodes, threeNodes } from '../fixtures/counting-nodes.ts'
import { type RedisServer, startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'
import { residentBytes } from '../fixtures/resident-memory.ts'
import { SECRETS } from '../stores/rows.ts'

const HOUR = 3_600_000
const MAX = 30
const NAME = 'limits whose windows somebody changes in Redis'

describe.skipIf(withoutRedis(NAME))('limits whose windows somebody changes in Redis', () => {
  let server: RedisServer
  let nodes: CountingNode[]
  beforeAll(async () => {
    server = await startRedisServer()
  })
  afterAll(() => server?.stop())
  beforeEach(async () => {
    await server.command(['FLUSHALL'])
    nodes = await threeNodes(server.url)
  })
  afterEach(() => stopNodes(nodes))

  const limit = () => ({ name: 'key requests', subject: randomUUID(), max: MAX, windowMs: HOUR })
  /** The number of calls that a node admits of this many. */
  const through = async (node: number, counted: ReturnType<typeof limit>, calls: number): Promise<number> => {
    let allowed = 0
    for (let index = 0; index < calls; index += 1)
      if ((await nodes[node]?.counts.take(counted))?.allowed) allowed += 1
    return allowed
  }
  const keys = async (pattern: string): Promise<string[]> =>
    (await server.command(['KEYS', pattern])) as string[]
  const windows = () => keys('*:key:requests:*')
  /** Nodes report ten times a second, and may be late on a busy machine. */
  const settled = () => delay(900)
  /** Resolves when all nodes know again what the others have admitted. */
  const refilled = async (): Promise<void> => {
    await expect.poll(() => nodes.every(({ peers }) => peers.isReachable && !peers.isRefilling)).toBe(true)
  }
  /** Does damage, and resolves when every node has noticed it, and all have reported. */
  const repairedAfter = async (damage: () => Promise<unknown>): Promise<void> => {
    const before = new Set(nodes.map(({ peers }) => peers.generation))
    await damage()
    await expect.poll(() => nodes.every(({ peers }) => !before.has(peers.generation))).toBe(true)
    await refilled()
    await settled()
  }

  test.each<[string, (window: string) => readonly string[]]>([
    ['deletes', (window) => ['DEL', window]],
    ['makes text of', (window) => ['SET', window, 'rubbish']],
    ['expires', (window) => ['PEXPIRE', window, '1']],
  ])(
    'an attacker who %s a rate limit window in Redis gains no call, even if one node had used up the limit',
    async (_, spoil) => {
      const counted = limit()
      expect(await through(0, counted, MAX)).toBe(MAX)
      await settled()
      await repairedAfter(async () => {
        for (const window of await windows()) await server.command(spoil(window))
      })
      expect(await through(1, counted, MAX)).toBe(0)
      expect(await through(2, counted, MAX)).toBe(0)
    },
  )

  test('after Redis lost its counters, each node admits only its share of a rate limit until all have reported again', async () => {
    const counted = limit()
    let all = 0
    // A node gives back what it has taken in advance and not used within a few seconds.
    await expect
      .poll(async () => {
        for (const node of [0, 1, 2]) all += await through(node, counted, 1)
        return all
      })
      .toBe(MAX)
    for (let round = 0; round < 5; round += 1) {
      await settled()
      for (const window of await windows()) await server.command(['DEL', window])
      for (const node of [0, 1, 2]) all += await through(node, counted, MAX)
    }
    expect(all).toBe(MAX)
  })

  test('no call beyond a rate limit is admitted after an attacker restores an old count of the limit in Redis', async () => {
    const counted = limit()
    expect(await through(0, counted, 2)).toBe(2)
    expect(await through(1, counted, 2)).toBe(2)
    await settled()
    const [window = ''] = await windows()
    const [field = ''] = (await server.command(['HKEYS', window])) as string[]
    // As a text, it would be damaged.
    const save = `local v = redis.call('HGET', KEYS[1], ARGV[1]); return redis.call('SET', 'saved', v)`
    const back = `return redis.call('HSET', KEYS[1], ARGV[1], redis.call('GET', 'saved'))`
    await server.command(['EVAL', save, '1', window, field])
    let all = 4
    for (const node of [0, 1, 2]) all += await through(node, counted, 8)
    for (let round = 0; round < 3; round += 1) {
      await settled()
      await server.command(['EVAL', back, '1', window, field])
      for (const node of [0, 1, 2]) all += await through(node, counted, MAX)
    }
    expect(all).toBeLessThanOrEqual(MAX)
  })

  test.each([
    ['a text that is none', ['SET', 'abc']],
    ['a list', ['LPUSH', 'abc']],
    ['nothing but digits', ['SET', '12345']],
    ['100 MB', ['SETRANGE', '104857600', 'x']],
  ])(
    'a damaged generation number in Redis is replaced, and the nodes go on sharing limits: %s',
    async (_, words) => {
      const counted = limit()
      expect(await through(0, counted, MAX)).toBe(MAX)
      await settled()
      const [memory = ''] = await keys('*:memory')
      const before = residentBytes(process.pid)
      // In one step: a node may write a new generation at any moment.
      const replace = `redis.call('DEL', KEYS[1]); return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))`
      await repairedAfter(() => server.command(['EVAL', replace, '1', memory, ...words]))
      expect(await server.command(['GETRANGE', memory, '0', '64'])).toMatch(/^\d+\.\d+$/)
      expect(await through(1, counted, MAX)).toBe(0)
      expect(residentBytes(process.pid) - before).toBeLessThan(60 * 1024 * 1024)
    },
  )

  test('the Redis entry of a rate limit window that was enlarged to 50 MB is replaced, and the limit still applies', async () => {
    const counted = limit()
    expect(await through(0, counted, MAX)).toBe(MAX)
    await settled()
    const [window = ''] = await windows()
    const [field = ''] = (await server.command(['HKEYS', window])) as string[]
    const grow = `return redis.call('HSET', KEYS[1], ARGV[1], string.rep('x', 50000000))`
    await repairedAfter(() => server.command(['EVAL', grow, '1', window, field]))
    expect(await through(1, counted, MAX)).toBe(0)
    const bytes = await server.command(['MEMORY', 'USAGE', window])
    expect(Number(bytes)).toBeLessThan(100_000)
  })

  test('calls in flight still count against a limit after their hash in Redis is deleted', async () => {
    const all = nodes.map(({ peers }) => new SharedSemaphore(peers))
    onTestFinished(async () => void (await Promise.all(all.map((places) => places.close()))))
    const parallel = { subject: 'key:1', max: 6 }
    const taken = async (node: number): Promise<number> => {
      let admitted = 0
      for (let index = 0; index < 6; index += 1) if (await all[node]?.take(parallel)) admitted += 1
      return admitted
    }
    expect(await taken(0)).toBe(6)
    const hashes = (): Promise<string[]> => keys('*:calls:*')
    const types = async (): Promise<unknown[]> =>
      Promise.all((await hashes()).map((hash) => server.command(['TYPE', hash])))
    await server.command(['DEL', ...(await hashes())])
    await expect.poll(types).toContain('hash')
    await settled()
    await refilled()
    expect(await taken(1)).toBe(0)
    for (const hash of await hashes()) await server.command(['SET', hash, 'rubbish'])
    await expect.poll(types).not.toContain('string')
    await settled()
    await refilled()
    expect(await taken(2)).toBe(0)
  })

  test('a restart of Redis, empty or from an old copy, admits no call beyond a rate limit', async () => {
    const namespace = `test:${randomUUID()}`
    const messages = new NodeMessages(SECRETS)
    const [teller, hearer] = [0, 1].map(() => new RedisAnnouncements(server.url, namespace, messages))
    const heard: string[] = []
    hearer?.listen({ received: (text) => void heard.push(text) })
    onTestFinished(async () => void (await Promise.all([teller?.close(), hearer?.close()])))
    await Promise.all([teller?.firstAttempt, hearer?.firstAttempt])
    const counted = limit()
    let all = await through(0, counted, 4)
    await settled()
    await server.command(['SAVE'])
    all += await through(0, counted, 6)
    for (const node of [1, 2]) all += await through(node, counted, MAX / 3)
    await settled()
    for (let round = 0; round < 2; round += 1) {
      await repairedAfter(async () => {
        await server.kill()
        for (const node of [0, 1, 2]) all += await through(node, counted, 3)
        await server.restart()
        for (const node of [0, 1, 2]) all += await through(node, counted, 3)
      })
      for (const node of [0, 1, 2]) all += await through(node, counted, MAX)
    }
    expect(all).toBe(MAX)
    await expect
      .poll(async () => {
        await teller?.announce('changed n settings').catch(() => {})
        return heard.length
      })
      .toBeGreaterThan(0)
  })

  test('messages of 2 MB in Redis are dropped, and the next one of a node is heard', async () => {
    const namespace = `test:${randomUUID()}`
    const messages = new NodeMessages(SECRETS)
    const hearer = new RedisAnnouncements(server.url, namespace, messages, PATIENT.connectionMs)
    const heard: string[] = []
    hearer.listen({ received: (text) => void heard.push(text) })
    onTestFinished(() => hearer.close())
    await hearer.firstAttempt
    const publish = `return redis.call('PUBLISH', ARGV[1], string.rep('1 ', 1000000))`
    for (let index = 0; index < 3; index += 1) {
      await server.command(['EVAL', publish, '0', `${namespace}:changes`])
      await expect.poll(() => messages.dropped).toBe(index + 1)
    }
    await hearer.announce('changed n settings')
    await expect.poll(() => heard).toEqual(['changed n settings'])
  })
})
