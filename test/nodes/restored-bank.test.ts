import { describe, expect, onTestFinished, test } from 'vitest'
import { Client } from 'pg'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { withoutSessions } from '../stores/engines.ts'
import { type Nodes, SHARED, setNodes } from './fixture.ts'

/** Ten prompt and five output tokens. */
const COST = 30
/** Ten prompt and 10,000 output tokens. */
const DEAR = 40_010
const QUOTA = 1_000_000
const ADMIN = { id: 1, accessToken: ROOT.access_token }

describe.each(SHARED)('an older copy of the database on $name, restored', (engine) => {
  async function site(count: number): Promise<Nodes> {
    const nodes = await setNodes(engine, count, (upstream) => ({
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [{ ...ROOT, tokens: [token('ann', { remain_quota: QUOTA })] }],
    }))
    nodes.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    return nodes
  }

  /** Copies the database, and returns a function that replaces it by the copy; both end all sessions. */
  async function copied(place: string): Promise<() => Promise<void>> {
    const url = new URL(place)
    const name = url.pathname.slice(1)
    url.pathname = '/postgres'
    const client = new Client({ connectionString: url.href })
    await client.connect()
    onTestFinished(async () => {
      for (const one of [`${name}_copy`, `${name}_newer`])
        await withoutSessions(() => client.query(`drop database if exists ${one} with (force)`))
      await client.end()
    })
    const alone = async (statement: string): Promise<void> => {
      await client.query(`alter database ${name} allow_connections false`)
      // One that was beginning is seen later than the others.
      await withoutSessions(async () => {
        await client.query(
          'select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1',
          [name],
        )
        await client.query(statement)
      })
    }
    await alone(`create database ${name}_copy template ${name} strategy file_copy`)
    await client.query(`alter database ${name} allow_connections true`)
    return async () => {
      await alone(`alter database ${name} rename to ${name}_newer`)
      await client.query(`alter database ${name}_copy rename to ${name}`)
    }
  }

  const answer = async (nodes: Nodes, node: number): Promise<number> =>
    (await nodes.chat(node, 'ann', ask('m', { max_tokens: 10_000 }))).status
  const served = async (nodes: Nodes, node: number): Promise<void> => {
    await expect.poll(() => answer(nodes, node)).toBe(200)
  }

  test('after an older copy of the database is restored while nodes run, calls are served until the quota is used up', async () => {
    const nodes = await site(2)
    const { database, gateways, token, upstream } = nodes
    const both = (): Promise<number[]> => Promise.all([0, 1].map((node) => answer(nodes, node)))
    await served(nodes, 0)
    await served(nodes, 1)
    const restore = await copied(database.place)
    for (const remain_quota of [900_000, 800_000, 700_000]) {
      const changed = { id: 1, name: 'token-ann', remain_quota }
      await expect
        .poll(async () => (await manage(gateways[0]?.url ?? '', ADMIN, 'PUT /api/token/', changed)).status)
        .toBe(200)
      await served(nodes, 0)
      await served(nodes, 1)
    }
    await restore()
    await served(nodes, 0)
    await served(nodes, 1)
    upstream.script('m', { kind: 'whole', usage: usageText(10, 10_000) })
    for (let refused = 0; refused < 3; ) {
      const statuses = await both()
      refused = statuses.every((status) => status === 403) ? refused + 1 : 0
    }
    await expect
      .poll(() =>
        token('token-ann').then(({ remain, used }) => [remain >= 0 && remain < 2 * DEAR, remain + used]),
      )
      .toEqual([true, QUOTA])
  })

  test("after an old database copy is restored, killed nodes' reports are charged once, and leases in the copy are freed", async () => {
    const nodes = await site(1)
    const { database, gateways, token } = nodes
    await served(nodes, 0)
    await expect.poll(() => token('token-ann').then(({ used }) => used)).toBe(COST)
    const restore = await copied(database.place)
    await served(nodes, 0)
    // The last calls are not reported yet when the node is killed.
    for (let call = 0; call < 5; call += 1) await served(nodes, 0)
    await gateways[0]?.kill()
    await restore()
    await gateways[0]?.restart()
    const [row] = await database.sql('select count(*) from usage_log')
    const charged = COST * Number(row?.['count'])
    expect(charged).toBeGreaterThanOrEqual(COST)
    expect(charged).toBeLessThanOrEqual(7 * COST)
    expect(await token('token-ann')).toEqual({ remain: QUOTA - charged, used: charged, leased: 0 })
    await served(nodes, 0)
  })
})
