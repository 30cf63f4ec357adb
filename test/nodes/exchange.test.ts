import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type PermitResponse, type PermitRequest, bucketsOf } from '../../src/limits/peers.ts'
import { RedisPeers } from '../../src/limits/redis-peers.ts'
import { PATIENT, threeNodes, stopNodes } from '../fixtures/counting-nodes.ts'
import { type RedisServer, startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'
import { SharedWindow } from '../fixtures/shared-window.ts'

const NOTHING: Omit<PermitRequest, 'max' | 'windowMs' | 'bucket'> = {
  known: 0,
  used: 0,
  returned: 0,
  kept: 0,
  added: [],
  need: 0,
  want: 0,
}
const HOUR = 3_600_000

describe.skipIf(withoutRedis('exchanges of counts'))('an exchange of counts in Redis', () => {
  let server: RedisServer
  let peers: RedisPeers
  const namespace = `test:${randomUUID()}`
  beforeAll(async () => {
    server = await startRedisServer()
    const options = {
      url: server.url,
      namespace,
      node: 'one',
      names: () => ['one'],
      onReachability: () => {},
    }
    peers = new RedisPeers({ ...options, times: PATIENT })
    await peers.firstAttempt
  })
  afterAll(async () => {
    await peers?.close()
    await server?.stop()
  })

  const fresh = (windowMs = HOUR) => ({ name: 'key requests', subject: randomUUID(), max: 100, windowMs })
  /** Repeats the exchange while it is stale. */
  const exchange = async (
    counted: ReturnType<typeof fresh>,
    fields: Partial<PermitRequest>,
  ): Promise<PermitResponse> => {
    const question = { ...NOTHING, max: counted.max, windowMs: counted.windowMs, bucket: 0, ...fields }
    for (;;) {
      const answer = await peers.exchangePermits(counted, question)
      if (answer !== 'stale') return answer
    }
  }

  test('the permits of a rate limit that nodes exchange through Redis equal those of a simple model', async () => {
    const amount = fc.integer({ min: 0, max: 40 })
    const asked = fc.record({
      used: amount,
      returned: amount,
      kept: amount,
      added: fc.array(fc.tuple(fc.integer({ min: 0, max: 1_200 }), amount), { maxLength: 3 }),
      need: amount,
      want: amount,
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(asked, { minLength: 1, maxLength: 12 }),
        fc.constantFrom(30, 1_000, HOUR),
        async (steps, windowMs) => {
          const counted = fresh(windowMs)
          const model = new SharedWindow()
          let bucket = 0
          let known = 0
          for (const step of steps) {
            const question = { max: counted.max, windowMs, known, bucket, ...step }
            const answer = await exchange(counted, question)
            expect(answer.version).toBeGreaterThanOrEqual(Math.max(answer.nowMs, known))
            expect({ ...answer, version: 0 }).toEqual(model.exchange(answer.nowMs, question, 1))
            ;({ bucket } = answer)
            // A window of 30 ms may have expired.
            known = windowMs === HOUR ? answer.version : 0
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  test("rate limits in Redis are kept separately for each subject, and do not contain the subject's name", async () => {
    const [ann, ben] = [fresh(), fresh()]
    await exchange(ann, { added: [[0, 100]] })
    expect((await exchange(ann, { need: 1 })).granted).toBe(0)
    expect((await exchange(ben, { need: 1 })).granted).toBe(1)
    expect((await exchange({ ...ann, name: 'model requests' }, { need: 1 })).granted).toBe(1)
    expect(JSON.stringify(await server.command(['KEYS', '*']))).not.toContain(ann.subject)
  })

  test('the count of a rate limit in Redis is deleted when its window is over', async () => {
    await exchange(fresh(60), { added: [[0, 100]] })
    const kept = async (): Promise<number> =>
      ((await server.command(['KEYS', `${namespace}:key:requests:60:*`])) as string[]).length
    expect(await kept()).toBeLessThanOrEqual(1)
    await expect.poll(kept).toBe(0)
  })

  test('a node that has not noticed a loss of data in Redis gets no permits of a rate limit from Redis', async () => {
    const counted = fresh()
    await exchange(counted, { added: [[0, 40]] })
    await server.command(['SET', `${namespace}:memory`, '1.5'])
    const question = { ...NOTHING, max: 100, windowMs: HOUR, bucket: 0, need: 10 }
    // A heartbeat may have announced it in the meantime.
    const told = peers.generation?.startsWith('1.5 ')
      ? 'stale'
      : await peers.exchangePermits(counted, question)
    expect(told).toBe('stale')
    expect((await exchange(counted, {})).amounts.map(([, amount]) => amount)).toEqual([40])
  })

  test.each([
    ['text', ['HSET', 'KEY', 'FIELD', 'rubbish']],
    ['numbers that cannot be', ['HSET', 'KEY', 'FIELD', '\x92\xff\xff']],
    ['another type', ['SET', 'KEY', 'rubbish']],
  ])('an invalid rate limit window in Redis counts as lost data, and starts again: %s', async (_, words) => {
    const counted = fresh()
    await exchange(counted, { added: [[0, 100]] })
    const keys = (await server.command(['KEYS', `${namespace}:key:requests:*`])) as string[]
    for (const key of keys) {
      const type = await server.command(['TYPE', key])
      const fields = type === 'hash' ? ((await server.command(['HKEYS', key])) as string[]) : []
      if (words[0] === 'SET') await server.command(['SET', key, 'rubbish'])
      else for (const field of fields) await server.command(['HSET', key, field, words[3] ?? ''])
    }
    const { generation } = peers
    const question = { ...NOTHING, max: 100, windowMs: HOUR, bucket: 0, need: 1 }
    expect(await peers.exchangePermits(counted, question)).toBe('stale')
    expect(peers.generation).not.toBe(generation)
    expect(await peers.exchangePermits(counted, question)).toMatchObject({ granted: 1 })
    const lost = peers.generation
    await server.command(['FLUSHALL'])
    await expect.poll(() => peers.generation).not.toBe(lost)
  })

  test('the places of a node that reports nothing more are free, though it is still among the running nodes', async () => {
    const nodes = await threeNodes(server.url)
    onTestFinished(() => stopNodes(nodes))
    const [silent, other] = nodes.map(({ peers: node }) => node)
    const report = (node: RedisPeers | undefined, held: number, want: number) =>
      node?.exchangeSlots('key:1', { held, want, reported: held, max: 1 })
    await expect.poll(() => report(silent, 0, 1)).toBe(1)
    // The list of running nodes is not as quick, and a report lasts for a minute.
    await expect.poll(() => report(other, 0, 1), { timeout: 30_000, interval: 100 }).toBe(1)
    // Its silence is not a loss of data, after which all nodes would have to report again.
    expect(await report(silent, 1, 0)).toBe(0)
  })

  test('calls that Redis counted before its clock went back still count against the rate limit', async () => {
    const { widthMs } = bucketsOf(1_000)
    /** Counts 70 calls, moves them, and asks for 40 more; `hasHalted` if the window of a second may be over by then. */
    const movedAhead = async () => {
      const counted = fresh(1_000)
      const startMs = performance.now()
      const known = (await server.command(['KEYS', `${namespace}:key:requests:1000:*`])) as string[]
      const { bucket, nowMs } = await exchange(counted, { added: [[0, 60]], need: 10 })
      expect(bucket).toBeGreaterThan(nowMs / widthMs)
      const keys = (await server.command(['KEYS', `${namespace}:key:requests:1000:*`])) as string[]
      const key = keys.find((one) => !known.includes(one)) ?? ''
      const [field = ''] = (await server.command(['HKEYS', key])) as string[]
      // An hour ahead: as if the server's clock had been an hour ahead until now.
      const later = Math.ceil((nowMs + HOUR) / widthMs)
      const script = `return redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack({ ${nowMs}, ${later}, 70 }))`
      await server.command(['EVAL', script, '1', key, field])
      const { granted } = await exchange(counted, { need: 40 })
      return { counted, granted, hasHalted: performance.now() - startMs >= 1_000 }
    }
    let moved = await movedAhead()
    while (moved.hasHalted) moved = await movedAhead()
    const { counted, granted } = moved
    expect(granted).toBe(30)
    // Once the window of a second is over.
    await expect.poll(async () => (await exchange(counted, { need: 40 })).granted).toBe(40)
  })
})
