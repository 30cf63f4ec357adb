import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'
import type { Engine } from '../stores/engines.ts'
import { setNodes, SHARED } from '../nodes/fixture.ts'

interface NodeHealth {
  readonly node: string
  readonly items: readonly { readonly name: string; readonly minutes: readonly { requests: number }[] }[]
}

/** Makes one, two and three calls at three nodes, and reads the totals at each. */
async function expectAgreement(engine: Engine, env: Readonly<Record<string, string>>): Promise<void> {
  const nodes = await setNodes(
    engine,
    3,
    (upstream) => ({
      rate_limits: { global: { requests: 0 } },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { env },
  )
  nodes.upstream.script('m', { kind: 'whole' })
  for (const node of [0, 1, 1, 2, 2, 2]) expect((await nodes.chat(node, 'ann', ask('m'))).status).toBe(200)
  // A node may not have received the last one yet.
  await vi.waitFor(
    async () => {
      for (const [index, { url }] of nodes.gateways.entries()) {
        const { data } = await manage<NodeHealth & { others: NodeHealth[] }>(
          url,
          { id: 1, accessToken: ROOT.access_token },
          'GET /api/channel/health?nodes=all',
        )
        expect(requestsOf(data)).toBe(index + 1)
        expect(data.others.map(requestsOf).toSorted((a, b) => a - b)).toEqual(
          [1, 2, 3].filter((n) => n !== index + 1),
        )
        expect(new Set([data, ...data.others].map(({ node }) => node)).size).toBe(3)
      }
    },
    { timeout: 30_000, interval: 500 },
  )
}

function requestsOf({ items }: NodeHealth): number {
  return items
    .filter(({ name }) => name === 'm')
    .flatMap(({ minutes }) => minutes)
    .reduce((sum, { requests }) => sum + requests, 0)
}

describe.each(SHARED)('nodes on $name', (engine) => {
  test("GET /api/channel/health?nodes=all on any node has the channel's calls of each node, without Redis", () =>
    expectAgreement(engine, {}))

  test.skipIf(withoutRedis('channel health through Redis'))(
    "GET /api/channel/health?nodes=all on any node has the channel's calls of each node, with Redis",
    async () => {
      const server = await startRedisServer()
      onTestFinished(() => server.stop())
      await expectAgreement(engine, { REDIS_URL: server.url })
    },
  )
})
