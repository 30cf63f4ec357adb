import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { manage } from '../fixtures/account.ts'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask } from '../fixtures/fixture.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { type Nodes, SHARED, setNodes } from './fixture.ts'

/** The maximum output of a call; at four units each it far outweighs the prompt. */
const MAXIMUM = 100_000
/** Ten holds and a margin that is less than an eleventh, if the prompt costs at most 10,000 units. */
const FOR_TEN = 10 * (4 * MAXIMUM + 10_000)
/** One call with the maximum, and not a second one. */
const FOR_ONE = 4 * MAXIMUM + 10_000
/** Ten prompt and five output tokens. */
const COST = 30
const ADMIN = { id: 1, accessToken: ROOT.access_token }
const SOON = { timeout: 60_000, interval: 50 }

describe.each(SHARED)('two gateways on one $name', (engine) => {
  const nodes = (quota: number, count = 2) => {
    const configure = (upstream: ScriptedUpstream): Configuration => ({
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [{ ...ROOT, tokens: [token('ann', { remain_quota: quota })] }, user(2, 'bob', [token('bob')])],
    })
    return setNodes(engine, count, configure, { program: patientProgram })
  }

  describe('two running gateways', () => {
    let shared: Nodes
    const cleanUps: (() => Promise<void>)[] = []
    const configure = (upstream: ScriptedUpstream): Configuration => ({
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [
        {
          ...ROOT,
          tokens: [
            token('charged', { remain_quota: 1_000_000 }),
            token('crowd', { remain_quota: FOR_TEN }),
            token('last', { remain_quota: 1_000_000 }),
            token('doomed', { remain_quota: 1_000_000 }),
            token('set', { remain_quota: 1_000_000 }),
            token('simulated', { remain_quota: 1_000 }),
            token('shown', { remain_quota: FOR_ONE }),
          ],
        },
      ],
    })
    beforeAll(async () => {
      const onEnd = (cleanUp: () => Promise<void>) => cleanUps.push(cleanUp)
      shared = await setNodes(engine, 2, configure, { onEnd, program: patientProgram })
    })
    afterAll(async () => {
      for (const cleanUp of cleanUps.toReversed()) await cleanUp()
    })

    const idOf = async (name: string): Promise<number> => {
      const [row] = await shared.database.sql(`select id from tokens where name = '${name}'`)
      return Number(row?.['id'])
    }

    test("two gateways together never spend more than a user's balance, and use each other's unused leases of it", async () => {
      const { upstream, chat, token } = shared
      let release: (value?: unknown) => void = () => {}
      const after = new Promise((resolve) => (release = resolve))
      upstream.script('m', { kind: 'whole', usage: usageText(10, 5), after })
      let refused = 0
      const calls: Promise<FullResponse>[] = []
      const answered = async (): Promise<FullResponse> => {
        const answer = await chat(calls.length % 2, 'crowd', ask('m', { max_tokens: MAXIMUM }))
        if (answer.status !== 200) refused += 1
        return answer
      }
      const held = async (): Promise<number> => {
        await expect.poll(() => refused + upstream.received('m').length, SOON).toBe(calls.length)
        return upstream.received('m').length
      }
      while (calls.length < 40) calls.push(answered())
      // On a busy machine a node may return its unused lease too late for one call; the next call gets it.
      while ((await held()) < 10) calls.push(answered())
      release()
      const answers = await Promise.all(calls)
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(10)
      for (const answer of answers.filter(({ status }) => status !== 200)) {
        expect(answer.status).toBe(429)
        expect(answer.json().error).toMatchObject({ code: 'quota_held' })
      }
      await vi.waitFor(async () => expect((await token('token-crowd')).used).toBe(10 * COST), SOON)
    })

    test('a call waits for quota that a call of another gateway holds, and both gateways show the held amount', async () => {
      const { upstream, chat, gateways } = shared
      const plain = configure(upstream)
      // On a slow machine, the second call waits longer than a call usually does.
      const patient = { ...plain, options: { hold_wait: '60s' } }
      await Promise.all(gateways.map((gateway) => gateway.apply(patient)))
      const { promise: after, resolve: release } = Promise.withResolvers<void>()
      const usage = usageText(10, 5)
      upstream.script('m', { kind: 'whole', usage, after }, { kind: 'whole', usage })
      const held = (): Promise<number[]> =>
        Promise.all(
          gateways.map(async ({ url }) => {
            const answer = await call(url, undefined, {
              key: 'shown',
              method: 'GET',
              path: '/api/usage/token/',
            })
            return JSON.parse(answer.text).data.held_quota
          }),
        )
      const first = chat(0, 'shown', ask('m', { max_tokens: MAXIMUM }))
      await upstream.receivedAtLeast('m', 1)
      await expect.poll(async () => Math.min(...(await held())), SOON).toBeGreaterThan(4 * MAXIMUM)
      const [here, there] = await held()
      expect(here).toBe(there)
      const second = chat(1, 'shown', ask('m', { max_tokens: MAXIMUM / 2 }))
      await delay(300)
      expect(upstream.received('m')).toHaveLength(1)
      release()
      expect([(await first).status, (await second).status]).toEqual([200, 200])
      await expect.poll(held, SOON).toEqual([0, 0])
      await Promise.all(gateways.map((gateway) => gateway.apply(plain)))
    })

    test('a simulated call is affordable on every gateway as long as a real one is, although a gateway has borrowed nothing', async () => {
      const { gateways } = shared
      const simulated = async (url: string, prompt_tokens: number): Promise<string | undefined> => {
        const body = { token_id: await idOf('token-simulated'), model: 'm', prompt_tokens, max_tokens: 0 }
        const { data } = await manage<{ refusal: { code: string } | null }>(
          url,
          { id: ROOT.id, accessToken: ROOT.access_token },
          'POST /api/routing/simulate',
          body,
        )
        return data.refusal?.code
      }
      // On a busy machine the other gateway may return what it has borrowed too late for one call.
      const settled = (url: string, prompt: number): Promise<string | undefined> =>
        vi.waitFor(async () => {
          const code = await simulated(url, prompt)
          if (code === 'quota_held') throw new Error('the other gateway has not returned its lease')
          return code
        }, SOON)
      for (const { url } of gateways) expect(await settled(url, 1_000)).toBeUndefined()
      for (const { url } of gateways) expect(await settled(url, 1_001)).toBe('insufficient_quota')
    })

    test('two gateways alternately serve calls of a key until its quota does not cover the hold of another call', async () => {
      const { upstream, chat, token } = shared
      upstream.script('m', { kind: 'whole', usage: usageText(10, 50_000) })
      // On a busy machine the other gateway may return what it has borrowed too late for one call.
      const statusAt = (node: number): Promise<number> =>
        vi.waitFor(async () => {
          const { status, text } = await chat(node, 'last', ask('m', { max_tokens: MAXIMUM }))
          if (text.includes('"quota_held"')) throw new Error('the other gateway has not returned its lease')
          return status
        }, SOON)
      const statuses: number[] = []
      for (let index = 0; index < 6; index += 1) statuses.push(await statusAt(index % 2))
      // 200,010 units each: after three of them less is left than the hold of a fourth.
      expect(statuses).toEqual([200, 200, 200, 403, 403, 403])
      await vi.waitFor(
        async () => expect((await token('token-last')).remain).toBe(1_000_000 - 3 * 200_010),
        SOON,
      )
    })

    test('a key that is disabled or deleted on one gateway is refused by the other within a second', async () => {
      const { upstream, chat, gateways } = shared
      upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
      const url = gateways[0]?.url ?? ''
      const onB = () => chat(1, 'doomed', ask('m', { max_tokens: 100 }))
      expect((await onB()).status).toBe(200)
      const id = await idOf('token-doomed')
      await manage(url, ADMIN, 'PUT /api/token/?status_only=1', { id, status: 2 })
      await vi.waitFor(async () => expect((await onB()).status).toBe(401), { timeout: 60_000, interval: 20 })
      await manage(url, ADMIN, 'PUT /api/token/?status_only=1', { id, status: 1 })
      await vi.waitFor(async () => expect((await onB()).status).toBe(200), { timeout: 60_000, interval: 20 })
      await manage(url, ADMIN, `DELETE /api/token/${id}`)
      await vi.waitFor(async () => expect((await onB()).status).toBe(401), { timeout: 60_000, interval: 20 })
    })

    test('a quota of a key that is set on one gateway applies to the next call at another', async () => {
      const { upstream, chat, gateways, token } = shared
      const id = await idOf('token-set')
      upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
      let served = 0
      const onB = async (): Promise<number> => {
        const { status } = await chat(1, 'set', ask('m', { max_tokens: 100 }))
        if (status === 200) served += 1
        return status
      }
      // A charge that is reported later would be taken from the quota that is set.
      const charged = () =>
        vi.waitFor(async () => expect((await token('token-set')).used).toBe(served * COST), SOON)
      expect(await onB()).toBe(200)
      await charged()
      const set = (remain_quota: number) =>
        manage(gateways[0]?.url ?? '', ADMIN, 'PUT /api/token/', { id, name: 'token-set', remain_quota })
      expect((await set(100)).status).toBe(200)
      await vi.waitFor(async () => expect(await onB()).toBe(403), { timeout: 60_000, interval: 20 })
      await charged()
      expect((await set(5_000)).status).toBe(200)
      await vi.waitFor(async () => expect(await onB()).toBe(200), { timeout: 60_000, interval: 20 })
      await vi.waitFor(async () => expect((await token('token-set')).remain).toBe(5_000 - COST), SOON)
    })

    test('two gateways charge one key exactly for what both delivered, and at once show the same usage', async () => {
      const { upstream, chat, gateways, database, token } = shared
      const id = await idOf('token-charged')
      upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, index) => chat(index % 2, 'charged', ask('m', { max_tokens: 100 }))),
      )
      expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => 200))
      await vi.waitFor(
        async () =>
          expect(await token('token-charged')).toMatchObject({
            used: 40 * COST,
            remain: 1_000_000 - 40 * COST,
          }),
        SOON,
      )
      // Shown immediately after the call; on a busy machine, after a further call.
      await expect
        .poll(async () => {
          answers.push(await chat(0, 'charged', ask('m', { max_tokens: 100 })))
          const shown = await manage<{ used_quota: number }>(
            gateways[0]?.url ?? '',
            ADMIN,
            `GET /api/token/${id}`,
          )
          return shown.data.used_quota - answers.length * COST
        })
        .toBe(0)
      const ids = await database.sql(`select id from usage_log where token_id = ${id}`)
      expect(new Set(ids.map((row) => row['id']))).toEqual(
        new Set(answers.map(({ headers }) => headers['x-request-id'])),
      )
      await Promise.all(gateways.map((gateway) => gateway.stop()))
      expect(await token('token-charged')).toEqual({
        used: answers.length * COST,
        remain: 1_000_000 - answers.length * COST,
        leased: 0,
      })
      expect(await database.sql('select * from leases')).toEqual([])
    })
  })

  test('two gateways can start together on an empty database: one of them creates the declared users, both serve', async () => {
    const { gateways, chat, upstream, database, join } = await nodes(1_000_000, 0)
    await Promise.all([join(), join()])
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    for (const node of gateways.keys()) {
      expect((await chat(node, 'ann', ask('m', { max_tokens: 100 }))).status).toBe(200)
    }
    expect(await database.sql('select username from users order by id')).toEqual([
      { username: 'root' },
      { username: 'bob' },
    ])
  })

  test("of two gateways that start together on an empty database, one prints the first user's credentials, which are valid", async () => {
    const { gateways, join } = await setNodes(engine, 0, () => ({}))
    await Promise.all([join(), join()])
    const told = gateways.flatMap((gateway) => gateway.logs().match(/API key +sk-\w+/g) ?? [])
    expect(told).toHaveLength(1)
    const key = told[0]?.split('sk-')[1] ?? ''
    for (const { url } of gateways) {
      expect((await call(url, undefined, { method: 'GET', path: '/v1/models', key })).status).toBe(200)
    }
  })

  test('a killed node charges every delivered response after its restart, and its quota leases are returned', async () => {
    const { upstream, chat, gateways, database, token } = await nodes(1_000_000)
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => chat(0, 'ann', ask('m', { max_tokens: 100 }))),
    )
    let release: (value?: unknown) => void = () => {}
    const after = new Promise((resolve) => (release = resolve))
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5), after })
    const open = chat(0, 'ann', ask('m', { max_tokens: 100 })).catch(() => 'cut')
    await expect.poll(() => upstream.received('m').length).toBe(1)
    // A call is sent to its upstream before its hold is durable.
    await expect.poll(() => databaseOf(gateways[0]?.dataDir ?? '').openHolds()).toHaveLength(1)
    await gateways[0]?.kill()
    expect(await open).toBe('cut')
    release()
    await gateways[0]?.restart()
    const rows = await database.sql('select id, quota, reason from usage_log')
    for (const { headers } of answers) {
      expect(rows.filter(({ id }) => id === headers['x-request-id'])).toMatchObject([{ quota: COST }])
    }
    const crashed = rows.filter(({ reason }) => reason === 'crash')
    expect(crashed).toHaveLength(1)
    expect(await token('token-ann')).toEqual({
      used: 20 * COST + Number(crashed[0]?.['quota']),
      remain: 1_000_000 - 20 * COST - Number(crashed[0]?.['quota']),
      leased: 0,
    })
  })
})
