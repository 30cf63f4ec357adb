import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { type Cluster, startCluster } from '../fixtures/cluster.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { byTier } from '../runner/tier.ts'
import { untilAcquainted } from './fixture.ts'

const FIVE = { rate_limit: { parallel: 5 } }
const USERS = [
  ROOT,
  user(2, 'ann', [token('own', FIVE), token('free')]),
  user(4, 'cid', [token('c1'), token('c2')], { rate_limit: { requests: 30, window: '1h' } }),
  user(5, 'dee', [token('d1', { rate_limit: { requests: 30, window: '1h' } }), token('d2')]),
  user(6, 'eve', [token('e1', { rate_limit: { tokens: 100_000, window: '1h' } })]),
  user(7, 'fay', [token('f1'), token('f2')], { rate_limit: { tokens: 100_000, window: '1h' } }),
  user(8, 'gil', [token('g1', { rate_limit: { requests: 1_000, window: '1h' } })]),
  user(9, 'hal', [token('h1', { rate_limit: { requests: 1_000, window: '1h' } })]),
  user(3, 'bob', [token('b1'), token('b2', FIVE), token('b3')], FIVE),
]

/** Calls of which some are in flight, held at the upstream, and all others have ended. */
interface HeldCalls {
  readonly underWay: number
  /** The statuses of the ended calls, in any order. */
  readonly over: readonly number[]
  /** Lets the calls in flight end; resolves to their statuses. */
  release(): Promise<readonly number[]>
}

/** Sends calls to these nodes at once; resolves when each has either ended or is in flight. */
async function hold(
  { upstream, fleet }: Cluster,
  calls: readonly { readonly key: string; readonly node: number }[],
): Promise<HeldCalls> {
  const gate = Promise.withResolvers<void>()
  upstream.script('m', { kind: 'whole', after: gate.promise })
  const statuses: number[] = []
  const all = calls.map(async ({ key, node }) => {
    // A killed node ends its connections.
    const status = await call(fleet.urls[node] ?? '', ask('m'), { key }).then(
      (response) => response.status,
      () => 0,
    )
    statuses.push(status)
  })
  await expect.poll(() => statuses.length + upstream.received('m').length).toBe(calls.length)
  const over = [...statuses]
  return {
    underWay: upstream.received('m').length,
    over,
    async release() {
      gate.resolve()
      await Promise.all(all)
      return statuses.slice(over.length)
    },
  }
}

/** Calls with these keys in turn, most of them at the first of so many nodes. */
function crowdAt(
  nodes: number,
  count: number,
  ...keys: readonly [string, ...string[]]
): { key: string; node: number }[] {
  return Array.from({ length: count }, (_, index) => ({
    key: keys[index % keys.length] ?? keys[0],
    node: Math.max(0, (index % (nodes + 2)) - 2),
  }))
}

const times = (count: number, status: number): number[] => Array.from({ length: count }, () => status)

/** Calls at once, of which five are admitted. */
const MANY = 20
const FIVE_OF_MANY = { underWay: 5, over: times(MANY - 5, 429) }

/** Owners of a limit of requests, and their keys. */
const BOTH_OWNERS = [
  ['a user, for all keys together', ['c1', 'c2']],
  ['a key', ['d1']],
] as const

/** Owners of a limit of tokens, and their keys. */
const OWNERS_OF_TOKENS = [
  ['a user, for all keys together', ['f1', 'f2']],
  ['a key', ['e1']],
] as const

describe.skipIf(withoutRedis('limits at several nodes'))('limits of keys and users at several nodes', () => {
  describe.each([
    ['Redis', 3, {}],
    ['PostgreSQL alone', byTier(2, 3), { REDIS_URL: '' }],
  ])('own limits with %s at %d nodes', (store, count, env) => {
    let cluster: Cluster
    const crowd = (...calls: [count: number, key: string, ...others: string[]]) => crowdAt(count, ...calls)
    beforeAll(async () => {
      cluster = await startCluster({
        nodes: count,
        configure: (upstream) => ({ ...plainConfiguration(upstream.baseUrl('m')), users: USERS }),
        env,
        root: await patientProgram(),
      })
      // A node counts only slots of nodes that it knows.
      await untilAcquainted(cluster.fleet.nodes)
    })
    afterAll(() => cluster?.clear())

    /** Holds as many of these calls as the limit allows: slots are released after a response's end. */
    const fill = async (calls: Parameters<typeof hold>[1]): Promise<HeldCalls> => {
      for (;;) {
        const held = await hold(cluster, calls)
        expect(held.underWay).toBeLessThanOrEqual(5)
        if (held.underWay === 5) return held
        await held.release()
      }
    }

    /** How many of many calls the nodes admit, three times in a row. */
    const countsUnderWay = async (): Promise<number[]> => {
      const counts: number[] = []
      while (counts.length < 3) {
        const held = await hold(cluster, crowd(MANY, 'own'))
        counts.push(held.underWay)
        await held.release()
      }
      return counts
    }

    test("a key's limit of calls in flight is exact over all nodes, also when the calls end and new ones begin", async () => {
      const first = await hold(cluster, crowd(MANY, 'own'))
      expect(first).toMatchObject(FIVE_OF_MANY)
      expect(await first.release()).toEqual(times(5, 200))
      for (let round = 0; round < 3; round += 1) {
        const held = await fill(crowd(MANY, 'own'))
        expect(held).toMatchObject(FIVE_OF_MANY)
        expect(await held.release()).toEqual(times(5, 200))
      }
    })

    // Without Redis, each node states what remains of its share.
    test.each(store === 'Redis' ? [3] : [])(
      'the number of remaining requests that an answer states counts the calls of all %d nodes, and differs by one at most',
      async () => {
        const answerOf = (node: number) => call(cluster.fleet.urls[node] ?? '', ask('m'), { key: 'g1' })
        const left = ({ headers }: Awaited<ReturnType<typeof answerOf>>) =>
          Number(headers['x-ratelimit-remaining-requests'])
        cluster.upstream.script('m', { kind: 'whole' })
        await Promise.all(Array.from({ length: 64 }, (_, index) => answerOf(index % 3)))
        let calls = 64
        for (const node of [0, 1, 2])
          await expect
            .poll(
              async () => {
                const stated = left(await answerOf(node))
                calls += 1
                return Math.abs(1_000 - calls - stated)
              },
              { timeout: 60_000, interval: 300 },
            )
            .toBeLessThanOrEqual(1)
      },
    )

    test.each(store === 'Redis' ? [3] : [])(
      "a refusal states what remains of a key's limit over %d nodes, even at a node that the key has not called before",
      async () => {
        cluster.upstream.script('m', { kind: 'whole' })
        const { urls } = cluster.fleet
        for (let calls = 0; calls < 20; calls += 1)
          expect((await call(urls[0] ?? '', ask('m'), { key: 'h1' })).status).toBe(200)
        for (const url of [urls[1] ?? '', urls[2] ?? '']) {
          // Permits that the first node took and did not use are returned soon.
          const stated = async (): Promise<number> => {
            const refused = await call(url, '{', { key: 'h1' })
            expect(refused.status).toBe(400)
            expect(refused.headers['x-ratelimit-limit-requests']).toBe('1000')
            return Math.abs(980 - Number(refused.headers['x-ratelimit-remaining-requests']))
          }
          await expect.poll(stated, { timeout: 60_000, interval: 300 }).toBeLessThanOrEqual(1)
        }
      },
    )

    test("calls in flight of all keys of a user count against the user's limit, and take no slot of a key when refused", async () => {
      const held = await hold(cluster, crowd(MANY, 'b1', 'b2', 'b3'))
      expect(held).toMatchObject(FIVE_OF_MANY)
      expect(await held.release()).toEqual(times(5, 200))
      // No slot of the key is lost with the calls that its user's limit refused.
      await (await fill(crowd(MANY, 'b2'))).release()
    })

    test('all simultaneous calls of a key without a limit of calls in flight are admitted', async () => {
      const held = await hold(cluster, crowd(12, 'free'))
      expect(held).toMatchObject({ underWay: 12, over: [] })
      expect(await held.release()).toEqual(times(12, 200))
    })

    // Without Redis, each node applies its share of these limits.
    const counted = store === 'Redis' ? BOTH_OWNERS : []
    test.each(counted)('the request limit of %s is exact over all nodes', async (_, keys) => {
      cluster.upstream.script('m', { kind: 'whole' })
      const { urls } = cluster.fleet
      const statuses: number[] = []
      const send = async (n: number): Promise<void> => {
        const key = keys[n % keys.length] ?? ''
        statuses.push((await call(urls[n % urls.length] ?? '', ask('m'), { key })).status)
      }
      const admitted = (): number => statuses.filter((status) => status === 200).length
      await Promise.all(Array.from({ length: 90 }, (__, n) => send(n)))
      // Permits that another node took and did not use are returned soon.
      for (let n = 0; admitted() < 30; n += 1) await send(n)
      for (let n = 0; n < 2 * urls.length; n += 1) await send(n)
      expect(admitted()).toBe(30)
      expect(new Set(statuses)).toEqual(new Set([200, 429]))
    })

    const countedTokens = store === 'Redis' ? OWNERS_OF_TOKENS : []
    test.each(countedTokens)('the token limit of %s counts the tokens of all nodes', async (_, keys) => {
      cluster.upstream.script('m', { kind: 'whole', usage: usageText(40_000, 20_000) })
      const { urls } = cluster.fleet
      const ends: number[] = []
      const statusAt = async (node: number): Promise<number> =>
        (await call(urls[node] ?? '', ask('m'), { key: keys[node % keys.length] ?? '' })).status
      // 60,000 of 100,000 leave one more call, whatever its cost.
      for (const node of [0, 1]) ends.push(await statusAt(node))
      expect(ends).toEqual([200, 200])
      // Calls of two tokens: a node that counted alone would not refuse them.
      cluster.upstream.script('m', { kind: 'whole', usage: usageText(1, 1) })
      for (const node of [0, 1, 2]) await expect.poll(() => statusAt(node)).toBe(429)
    })

    test('while the shared database is unreachable, each node applies its share of a limit of calls in flight', async () => {
      const cable = store === 'Redis' ? cluster.redisProxy : cluster.postgresProxy
      // The database lends quota ahead, so that calls continue without it.
      await (await fill(crowd(MANY, 'own'))).release()
      cable.setFault({ kind: 'cut' })
      await expect.poll(countsUnderWay).toEqual(times(3, count * Math.floor(5 / count)))
      cable.setFault({ kind: 'pass' })
      // Until all nodes have reconnected, each disconnected one has its share beside the slots of the others.
      await expect.poll(countsUnderWay).toEqual(times(3, 5))
      const held = await fill(crowd(MANY, 'own'))
      expect(held).toMatchObject(FIVE_OF_MANY)
      expect(await held.release()).toEqual(times(5, 200))
    })

    test('the calls in flight of a killed node no longer count against the limits of its keys', async () => {
      const lost = await fill(crowd(MANY, 'own').map(({ key }) => ({ key, node: 0 })))
      expect((await call(cluster.fleet.urls[1] ?? '', ask('m'), { key: 'own' })).status).toBe(429)
      await cluster.fleet.node(0).kill()
      expect(await lost.release()).toEqual(times(5, 0))
      const others = crowd(MANY, 'own').map(({ key }, index) => ({ key, node: 1 + (index % (count - 1)) }))
      const held = await fill(others)
      expect(held).toMatchObject(FIVE_OF_MANY)
      expect(await held.release()).toEqual(times(5, 200))
    })
  })
})
