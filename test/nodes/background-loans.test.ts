import { describe, expect, test, vi } from 'vitest'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { storingUpstream } from '../fixtures/stored-responses.ts'
import { lockTable } from '../stores/locked-row.ts'
import { SHARED, setNodes } from './fixture.ts'

const QUOTA = 10_000_000
/** At four units each, more than an account's first loan. */
const HELD_TOKENS = 1_000_000
/** What is left of a lowered quota beside the hold: 250,000 tokens. */
const REST = 1_000_000
/** 100 tokens of the prompt at one quota unit, 50 of the output at four. */
const CHARGE = 300

describe.each(SHARED)('a background call on one of two nodes on one $name', (engine) => {
  test('the hold of a background response survives a restart of its node, so that other nodes cannot spend the held quota', async () => {
    const nodes = await setNodes(engine, 2, (upstream) => ({
      options: { hold_wait: 0 },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'), { protocol: 'responses' })],
      users: [ROOT, user(2, 'ann', [token('ann')], { quota: QUOTA })],
    }))
    const provider = storingUpstream('m')
    nodes.upstream.decide('m', (request) => provider.decision(request))
    const [one, two] = nodes.gateways
    if (!one || !two) throw new Error('there are no two nodes')
    const ask = (url: string, fields: object): Promise<FullResponse> =>
      call(url, { model: 'm', input: 'hi', ...fields }, { key: 'ann', path: '/v1/responses' })
    const begun = await ask(one.url, { background: true, max_output_tokens: HELD_TOKENS })
    expect(begun.status).toBe(200)
    await one.kill()
    await one.restart()
    const isServed = async (tokens: number): Promise<boolean> => {
      const { status, text } = await ask(two.url, { max_output_tokens: tokens })
      if (status !== 200) expect(text).toContain('quota_held')
      return status === 200
    }
    expect(await isServed(QUOTA / 4 - HELD_TOKENS + 50_000)).toBe(false)
    expect(await isServed(QUOTA / 4 - HELD_TOKENS - 50_000)).toBe(true)
    provider.backgroundStatus = 'completed'
    const path = `/v1/responses/${begun.json().id}`
    await call(one.url, undefined, { key: 'ann', method: 'GET', path })
    await vi.waitFor(async () => expect(await isServed(QUOTA / 4 - 50_000)).toBe(true), 30_000)
    await vi.waitFor(async () => {
      const [sums] = await nodes.database.sql(
        `select quota, used_quota as used, (select sum(quota)::bigint from usage_log) as charged from users where username = 'ann'`,
      )
      expect(sums).toEqual({ quota: QUOTA - 3 * CHARGE, used: 3 * CHARGE, charged: 3 * CHARGE })
    }, 30_000)
  })

  test.each([
    {
      what: 'quota of its user',
      change: `update users set quota = ${4 * HELD_TOKENS + REST} where username = 'ann'`,
    },
    {
      what: 'quota of its key',
      change: `update tokens set remain_quota = ${4 * HELD_TOKENS + REST} where name = 'ann'`,
    },
  ])(
    'a lower $what leaves a background response its hold when its node has failed to start again',
    async ({ change }) => {
      const nodes = await setNodes(engine, 2, (upstream) => ({
        options: { hold_wait: 0 },
        models: priced(['m']),
        channels: [channel('m', upstream.baseUrl('m'), { protocol: 'responses' })],
        users: [ROOT, user(2, 'ann', [token('ann', { name: 'ann', remain_quota: QUOTA })], { quota: QUOTA })],
      }))
      const provider = storingUpstream('m')
      nodes.upstream.decide('m', (request) => provider.decision(request))
      const [one, two] = nodes.gateways
      if (!one || !two) throw new Error('there are no two nodes')
      const { sql, place } = nodes.database
      const ask = (url: string, fields: object): Promise<FullResponse> =>
        call(url, { model: 'm', input: 'hi', ...fields }, { key: 'ann', path: '/v1/responses' })
      const isServed = async (tokens: number): Promise<boolean> => {
        const { status, text } = await ask(two.url, { max_output_tokens: tokens })
        if (status !== 200) expect(text).toContain('quota_held')
        return status === 200
      }
      const begun = await ask(one.url, { background: true, max_output_tokens: HELD_TOKENS })
      expect(begun.status).toBe(200)
      await vi.waitFor(async () => {
        const reported = await sql('select account from leases where held >= 4000000')
        expect(reported).toHaveLength(2)
      }, 30_000)
      await one.kill()
      // A start reads this table after it has returned the quota of its earlier run, before it resumes holds.
      const locked = await lockTable(place, 'model_ends')
      await expect(one.restart()).rejects.toThrow('lock timeout')
      await sql(change)
      expect(await isServed((REST + 200_000) / 4)).toBe(false)
      expect(await isServed((REST - 200_000) / 4)).toBe(true)
      await locked.unlock()
      await one.restart()
      expect(await isServed((REST + 200_000) / 4)).toBe(false)
      provider.backgroundStatus = 'completed'
      await call(one.url, undefined, { key: 'ann', method: 'GET', path: `/v1/responses/${begun.json().id}` })
      await vi.waitFor(async () => expect(await isServed(HELD_TOKENS)).toBe(true), 30_000)
      await vi.waitFor(async () => {
        const charged = await sql('select count(*)::int as calls, sum(quota)::bigint as quota from usage_log')
        expect(charged).toEqual([{ calls: 3, quota: 3 * CHARGE }])
      }, 30_000)
    },
  )
})
