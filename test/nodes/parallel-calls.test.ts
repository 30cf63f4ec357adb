import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../equipment/client.ts'
import { type Cluster, startCluster } from '../equipment/cluster.ts'
import { plainConfiguration, ROOT, token, user } from '../equipment/configuration.ts'
import { ask } from '../equipment/fixture.ts'
import type { PatchedCopy } from '../equipment/patched-copy.ts'
import { patientProgram } from '../equipment/patient-program.ts'
import { withoutRedis } from '../equipment/redis-server.ts'

const FIVE = { rate_limit: { parallel: 5 } }
const USERS = [
  ROOT,
  user(2, 'ann', [token('own', FIVE), token('free')]),
  user(3, 'bob', [token('b1'), token('b2', FIVE), token('b3')], FIVE),
]

/** Calls that are held at the upstream until `release`. */
interface HeldCalls {
  /** Statuses of the calls that were refused, in any order. */
  readonly refused: readonly number[]
  /** Lets the admitted calls end; resolves to their statuses. */
  release(): Promise<readonly number[]>
}

/** Sends calls to these nodes at once; resolves when `admitted` of them are under way and all others over. */
async function hold(
  { upstream, fleet }: Cluster,
  calls: readonly { readonly key: string; readonly node: number }[],
  admitted: number,
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
  await expect.poll(() => statuses.length).toBe(calls.length - admitted)
  await upstream.receivedAtLeast('m', admitted)
  const refused = [...statuses]
  expect(upstream.received('m')).toHaveLength(admitted)
  return {
    refused,
    async release() {
      gate.resolve()
      await Promise.all(all)
      return statuses.slice(refused.length)
    },
  }
}

/** So many calls, of these keys in turn, most of them at the first node. */
function crowd(count: number, ...keys: readonly [string, ...string[]]): { key: string; node: number }[] {
  return Array.from({ length: count }, (_, index) => ({
    key: keys[index % keys.length] ?? keys[0],
    node: Math.max(0, (index % 5) - 2),
  }))
}

const times = (count: number, status: number): number[] => Array.from({ length: count }, () => status)

describe.skipIf(withoutRedis('calls under way at three nodes'))('calls under way at three nodes', () => {
  let program: PatchedCopy
  beforeAll(async () => {
    program = await patientProgram()
  })
  afterAll(() => program?.discard())

  describe.each([
    ['Redis', {}],
    ['PostgreSQL alone', { REDIS_URL: '' }],
  ])('with %s', (store, env) => {
    let cluster: Cluster
    beforeAll(async () => {
      cluster = await startCluster({
        nodes: 3,
        configure: (upstream) => ({ ...plainConfiguration(upstream.baseUrl('m')), users: USERS }),
        env,
        root: program.root,
      })
    })
    afterAll(() => cluster?.clear())

    /** Passes once the whole limit is free: leaving calls give places back in the background. */
    const untilFree = async (key: string): Promise<void> => {
      await expect
        .poll(async () => {
          const calls = await Promise.all(
            [0, 1, 2, 0, 1].map((node) => call(cluster.fleet.urls[node] ?? '', ask('m'), { key })),
          )
          return calls.map(({ status }) => status)
        })
        .toEqual(times(5, 200))
    }

    test('are as many as the limit of their key, exactly, time and again', async () => {
      for (let round = 0; round < 3; round += 1) {
        const held = await hold(cluster, crowd(50, 'own'), 5)
        expect(held.refused).toEqual(times(45, 429))
        expect(await held.release()).toEqual(times(5, 200))
        await untilFree('own')
      }
    })

    test('of all keys of a user count together, and a key has no place where its user has none', async () => {
      const held = await hold(cluster, crowd(50, 'b1', 'b2', 'b3'), 5)
      expect(held.refused).toEqual(times(45, 429))
      expect(await held.release()).toEqual(times(5, 200))
      await untilFree('b2')
    })

    test('without a limit are not counted', async () => {
      const held = await hold(cluster, crowd(12, 'free'), 12)
      expect(held.refused).toEqual([])
      expect(await held.release()).toEqual(times(12, 200))
    })

    test('keep to the share of each node while the common store is away, and are exact afterwards', async () => {
      const cable = store === 'Redis' ? cluster.redisProxy : cluster.postgresProxy
      // The database lends quota ahead, so that calls go on without it.
      await untilFree('own')
      await cable.disconnect()
      const spread = crowd(50, 'own')
      await expect
        .poll(async () => {
          const held = await hold(cluster, spread, 3).catch(() => undefined)
          return held && [...(await held.release())]
        })
        .toEqual(times(3, 200))
      await cable.reconnect()
      await untilFree('own')
      const held = await hold(cluster, crowd(50, 'own'), 5)
      expect(held.refused).toEqual(times(45, 429))
      expect(await held.release()).toEqual(times(5, 200))
    })

    test('that a killed node had are given back', async () => {
      await untilFree('own')
      const lost = await hold(
        cluster,
        crowd(5, 'own').map(({ key }) => ({ key, node: 0 })),
        5,
      )
      expect((await call(cluster.fleet.urls[1] ?? '', ask('m'), { key: 'own' })).status).toBe(429)
      await cluster.fleet.node(0).kill()
      expect(await lost.release()).toEqual(times(5, 0))
      cluster.upstream.script('m', { kind: 'whole' })
      const statusAt = async (node: number): Promise<number> =>
        (await call(cluster.fleet.urls[node] ?? '', ask('m'), { key: 'own' })).status
      await expect.poll(() => statusAt(1)).toBe(200)
      const others = crowd(50, 'own').map(({ key }, index) => ({ key, node: 1 + (index % 2) }))
      const held = await hold(cluster, others, 5)
      expect(held.refused).toEqual(times(45, 429))
      expect(await held.release()).toEqual(times(5, 200))
    })
  })
})
