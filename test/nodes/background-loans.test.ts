import { describe, expect, test, vi } from 'vitest'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { retryWhileOverloaded } from '../fixtures/fixture.ts'
import { storingUpstream } from '../fixtures/stored-responses.ts'
import { lockTable } from '../stores/locked-row.ts'
import { SHARED, sharedNodes } from './fixture.ts'

const QUOTA = 10_000_000
/** At four units each, more than an account's first loan. */
const HELD_TOKENS = 1_000_000
/** What is left of a lowered quota beside the hold: 250,000 tokens. */
const REST = 1_000_000
/** 100 tokens of the prompt at one quota unit, 50 of the output at four. */
const CHARGE = 300

/** Users, one for each test, with a key, a model and a channel of the same name. */
const USERS = [
  [2, 'ann'],
  [3, 'bea'],
  [4, 'cid'],
] as const
type Name = (typeof USERS)[number][1]

describe.each(SHARED)('a background call on one of two nodes on one $name', (engine) => {
  const shared = sharedNodes(engine, 2, (upstream) => ({
    options: { hold_wait: 0 },
    models: priced(USERS.map(([, name]) => name)),
    channels: USERS.map(([, name]) => channel(name, upstream.baseUrl(name), { protocol: 'responses' })),
    users: [
      ROOT,
      ...USERS.map(([id, name]) =>
        user(id, name, [token(name, { name, remain_quota: QUOTA })], { quota: QUOTA }),
      ),
    ],
  }))

  /** The two nodes, a provider of the user's model, and calls with the user's key. */
  function siteOf(name: Name) {
    const { upstream, gateways, database } = shared.nodes
    const provider = storingUpstream(name)
    upstream.decide(name, (request) => provider.decision(request))
    const [one, two] = gateways
    if (!one || !two) throw new Error('there are no two nodes')
    const ask = (url: string, fields: object): Promise<FullResponse> =>
      retryWhileOverloaded(() =>
        call(url, { model: name, input: 'hi', ...fields }, { key: name, path: '/v1/responses' }),
      )
    /** Also false where the other node returns its unused lease too late for one call, as it may on a busy machine. */
    const isServed = async (tokens: number): Promise<boolean> => {
      const { status, text } = await ask(two.url, { max_output_tokens: tokens })
      if (status !== 200) expect(text).toContain('quota_held')
      return status === 200
    }
    const [userId] = USERS.find(([, username]) => username === name) ?? []
    return { provider, one, ask, isServed, database, userId }
  }

  test('the hold of a background response survives a restart of its node, so that other nodes cannot spend the held quota', async () => {
    const { provider, one, ask, isServed, database } = siteOf('ann')
    const begun = await ask(one.url, { background: true, max_output_tokens: HELD_TOKENS })
    expect(begun.status).toBe(200)
    await one.kill()
    await one.restart()
    expect(await isServed(QUOTA / 4 - HELD_TOKENS + 50_000)).toBe(false)
    await expect.poll(() => isServed(QUOTA / 4 - HELD_TOKENS - 50_000)).toBe(true)
    provider.backgroundStatus = 'completed'
    const path = `/v1/responses/${begun.json().id}`
    await call(one.url, undefined, { key: 'ann', method: 'GET', path })
    await vi.waitFor(async () => expect(await isServed(QUOTA / 4 - 50_000)).toBe(true), 60_000)
    await vi.waitFor(async () => {
      const [sums] = await database.sql(
        `select quota, used_quota as used, (select sum(quota)::bigint from usage_log where user_id = users.id) as charged from users where username = 'ann'`,
      )
      expect(sums).toEqual({ quota: QUOTA - 3 * CHARGE, used: 3 * CHARGE, charged: 3 * CHARGE })
    }, 60_000)
  })

  test.each<{ readonly what: string; readonly name: Name; readonly change: string }>([
    {
      what: 'quota of its user',
      name: 'bea',
      change: `update users set quota = ${4 * HELD_TOKENS + REST} where username = 'bea'`,
    },
    {
      what: 'quota of its key',
      name: 'cid',
      change: `update tokens set remain_quota = ${4 * HELD_TOKENS + REST} where name = 'cid'`,
    },
  ])(
    'a lower $what leaves a background response its hold when its node has failed to start again',
    async ({ name, change }) => {
      const { provider, one, ask, isServed, database, userId } = siteOf(name)
      const { sql, place } = database
      const begun = await ask(one.url, { background: true, max_output_tokens: HELD_TOKENS })
      expect(begun.status).toBe(200)
      await vi.waitFor(async () => {
        const reported = await sql(
          `select account from leases where held >= 4000000 and account in ('u:${userId}', (select 't:' || id from tokens where name = '${name}'))`,
        )
        expect(reported).toHaveLength(2)
      }, 60_000)
      await one.kill()
      // A start reads this table after it has returned the quota of its earlier run, before it resumes holds.
      const locked = await lockTable(place, 'model_ends')
      await expect(one.restart()).rejects.toThrow('lock timeout')
      await sql(change)
      expect(await isServed((REST + 200_000) / 4)).toBe(false)
      await expect.poll(() => isServed((REST - 200_000) / 4)).toBe(true)
      await locked.unlock()
      await one.restart()
      expect(await isServed((REST + 200_000) / 4)).toBe(false)
      provider.backgroundStatus = 'completed'
      await call(one.url, undefined, { key: name, method: 'GET', path: `/v1/responses/${begun.json().id}` })
      await vi.waitFor(async () => expect(await isServed(HELD_TOKENS)).toBe(true), 60_000)
      await vi.waitFor(async () => {
        const charged = await sql(
          `select count(*)::int as calls, sum(quota)::bigint as quota from usage_log where user_id = ${userId}`,
        )
        expect(charged).toEqual([{ calls: 3, quota: 3 * CHARGE }])
      }, 60_000)
    },
  )
})
