import { Client } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, retryWhileOverloaded } from '../fixtures/fixture.ts'
import { patientWithNodes } from '../fixtures/patient-program.ts'
import { residentBytes } from '../fixtures/resident-memory.ts'
import { SHARED, setNodes, untilAcquainted } from './fixture.ts'
import { atNight } from '../runner/tier.ts'

/** Ten prompt and five output tokens. */
const COST = 30
const ADMIN = { id: 1, accessToken: ROOT.access_token }
const LIMIT = 40

describe.each(SHARED)('a role of $name without any grant', (engine) => {
  async function attacked(program?: () => Promise<string>) {
    const nodes = await setNodes(
      engine,
      2,
      (to) => ({
        models: priced(['m']),
        channels: [channel('m', to.baseUrl('m'))],
        users: [
          ROOT,
          user(2, 'ann', [token('ann')]),
          user(3, 'bob', [token('bob', { rate_limit: { requests: LIMIT, window: '1h' } })]),
        ],
      }),
      { program },
    )
    nodes.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const { sql, place } = nodes.database
    const role = `nobody_${Date.now()}`
    await sql(`create role ${role} login password 'nobody'`)
    onTestFinished(async () => void (await sql(`drop role ${role}`).catch(() => {})))
    const url = new URL(place)
    url.username = role
    url.password = 'nobody'
    const client = new Client({ connectionString: url.href })
    client.on('error', () => {})
    await client.connect()
    onTestFinished(() => client.end().catch(() => {}))
    const notify = (text: string) => client.query('select pg_notify($1, $2)', ['sluice', text])
    const statuses = async (key: string, count: number): Promise<number[]> => {
      const all: number[] = []
      for (let index = 0; index < count; index += 1) {
        const answer = await retryWhileOverloaded(() =>
          nodes.chat(index % 2, key, ask('m', { max_tokens: 100 })),
        )
        all.push(answer.status)
      }
      return all
    }
    const dropped = async (): Promise<number> => {
      const options = { method: 'GET', path: '/metrics' }
      const { text } = await call(nodes.gateways[0]?.url ?? '', undefined, options)
      return Number(/^sluice_node_messages_dropped_total (\d+)/m.exec(text)?.[1])
    }
    return { ...nodes, client, notify, statuses, dropped }
  }

  test('messages between nodes that a PostgreSQL role without grants invents are dropped and counted, and change no call or limit', async () => {
    const { notify, statuses, dropped, gateways, token: tokenOf } = await attacked(patientWithNodes)
    expect(await statuses('ann', 4)).toEqual([200, 200, 200, 200])
    // A node has the whole limit until it knows the other node.
    await untilAcquainted(gateways)
    const before = await dropped()
    const texts = [
      'account u:2 999999',
      'account t:1 999999',
      'account u:2',
      'recall u:2 somebody',
      'changed somebody anything',
      'nodes',
      ...Array.from({ length: 40 }, (_, index) => `here made-up-${index}`),
      ...Array.from({ length: 40 }, (_, index) => `gone made-up-${index}`),
      'report? 00000000-0000-4000-8000-000000000000 somebody',
    ]
    const over = new AbortController()
    const attack = (async (): Promise<void> => {
      while (!over.signal.aborted) for (const text of texts) await notify(text)
    })()
    expect(new Set(await statuses('ann', 40))).toEqual(new Set([200]))
    // Without Redis each of the two nodes has half of the limit.
    const limited = await statuses('bob', LIMIT + 10)
    expect(limited.filter((status) => status === 200)).toHaveLength(LIMIT)
    over.abort()
    await attack
    await expect.poll(dropped).toBeGreaterThanOrEqual(before + texts.length)
    const health = () =>
      manage<{ nodes?: unknown[] }>(gateways[0]?.url ?? '', ADMIN, 'GET /api/channel/health?nodes=all')
    await expect.poll(async () => (await health()).status).toBe(200)
    expect(JSON.stringify((await health()).body)).not.toContain('made-up')
    await expect.poll(async () => (await tokenOf('token-ann')).used).toBe(44 * COST)
  })

  test('messages between nodes that a PostgreSQL role without grants repeats change no charge, and admit no call', async () => {
    const { client, notify, statuses, gateways, token: tokenOf } = await attacked()
    const heard: string[] = []
    client.on('notification', ({ payload }) => void heard.push(payload ?? ''))
    await client.query('listen sluice')
    const url = gateways[0]?.url ?? ''
    await statuses('ann', 2)
    await manage(url, ADMIN, 'POST /api/user/manage', { id: 2, action: 'add_quota', value: 5, mode: 'add' })
    await expect.poll(() => heard.filter((text) => text.endsWith(' account u:2')).length).toBeGreaterThan(0)
    // A node requests no report until it knows the other node.
    const reports = async (): Promise<number> => {
      await manage(url, ADMIN, 'GET /api/channel/health?nodes=all')
      return heard.filter((text) => / report /.test(text)).length
    }
    await expect.poll(reports, { interval: 500 }).toBeGreaterThan(0)
    await client.query('unlisten sluice')
    const captured = [...heard]
    const over = new AbortController()
    const attack = (async (): Promise<void> => {
      while (!over.signal.aborted) for (const text of captured) await notify(text)
    })()
    expect(new Set(await statuses('ann', 40))).toEqual(new Set([200]))
    over.abort()
    await attack
    await expect.poll(async () => (await tokenOf('token-ann')).used).toBe(42 * COST)
  })

  atNight(
    'nodes that get 20,000 large messages from a role without grants go on serving, and grow by less than 100 MB',
    async () => {
      const { notify, statuses, gateways, dropped } = await attacked()
      await statuses('ann', 4)
      const pids = gateways.map(({ pid }) => pid)
      const bomb = `report ${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)} made-up 0 500 ${'A'.repeat(7_900)}`
      const send = async (count: number): Promise<void> => {
        for (let index = 0; index < count; index += 100)
          await Promise.all(
            Array.from({ length: 100 }, (_, more) => notify(`${bomb}${index + more}`.slice(-7_990))),
          )
      }
      // Fills the young generation once, which takes up to 96 MB.
      await send(5_000)
      const before = Math.max(...pids.map(residentBytes))
      const before20k = await dropped()
      const sending = send(20_000)
      expect(new Set(await statuses('ann', 40))).toEqual(new Set([200]))
      await sending
      // A node misses what is sent while it restores a connection whose check took too long.
      const received = async (): Promise<number> => {
        const count = (await dropped()) - before20k
        if (count < 20_000) await send(100)
        return count
      }
      await expect.poll(received, { interval: 500 }).toBeGreaterThanOrEqual(20_000)
      // Garbage is collected at the latest when a node has nothing to do.
      await expect.poll(() => Math.max(...pids.map(residentBytes)) - before).toBeLessThan(100 * 1024 * 1024)
    },
  )
})
