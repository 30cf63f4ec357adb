import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Account, manage, type ManagementResponse } from '../fixtures/account.ts'
import { errorBody } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const ADA = { id: 2, accessToken: 'the-access-token-of-ada' }
const ANN = { id: 3, accessToken: 'the-access-token-of-ann' }

interface Item {
  readonly id: number
  readonly name: string
  readonly state: string
  readonly rests_until: number | null
  readonly minutes: readonly { readonly requests: number; readonly failed: number; readonly p50_ms: number }[]
}
interface Health {
  readonly node: string
  readonly at: number
  readonly items: readonly Item[]
  readonly others: readonly unknown[]
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 } },
    options: { retries: 0 },
    models: priced(['good', 'bad', 'shaky', 'keyed']),
    channels: ['good', 'bad', 'shaky', 'keyed'].map((name) =>
      channel(name, upstream.baseUrl(name), { keys: ['sk-one', 'sk-two'] }),
    ),
    users: [
      ROOT,
      user(2, 'ada', [token('ada')], { access_token: ADA.accessToken, role: 10 }),
      user(3, 'ann', [], { access_token: ANN.accessToken }),
    ],
  }))
})
afterAll(() => fixture?.close())

const health = (account: Account, query = ''): Promise<ManagementResponse<Health>> =>
  manage<Health>(fixture.gateway.url, account, `GET /api/channel/health${query}`)
const itemOf = async (name: string): Promise<Item | undefined> =>
  (await health(ADA)).data.items.find((one) => one.name === name)
const totals = (item: Item | undefined): number[] => [
  item?.minutes.reduce((sum, { requests }) => sum + requests, 0) ?? -1,
  item?.minutes.reduce((sum, { failed }) => sum + failed, 0) ?? -1,
]
const chat = (model: string) => fixture.chat('ada', ask(model))

describe('GET /api/channel/health', () => {
  test('GET /api/channel/health is open to admins and root only', async () => {
    expect((await health(ADA)).status).toBe(200)
    expect((await health(AS_ROOT)).status).toBe(200)
    expect((await health(ANN)).status).toBe(403)
    expect((await health({ id: 2, accessToken: 'wrong' })).status).toBe(401)
    expect((await health(ADA, '?nodes=some')).status).toBe(400)
  })

  test('GET /api/channel/health names the node that answers, and no others where the node has its own database', async () => {
    const { data } = await health(ADA, '?nodes=all')
    expect(data).toMatchObject({ node: expect.stringMatching(/-[0-9a-f]{8}$/), others: [] })
    expect(Math.abs(data.at - Date.now() / 1000)).toBeLessThan(60)
  })

  test('GET /api/channel/health counts the calls of a working channel, and measures their duration', async () => {
    fixture.upstream.script('good', { kind: 'whole' })
    for (let n = 0; n < 3; n += 1) expect((await chat('good')).status).toBe(200)
    const good = await itemOf('good')
    expect(good).toMatchObject({
      state: 'works',
      failures: 0,
      rests_until: null,
      last_error: null,
      keys: { total: 2, set_aside: 0, limits: [{}, {}] },
    })
    expect(good?.minutes).toHaveLength(60)
    expect(totals(good)).toEqual([3, 0])
    expect(good?.minutes.findLast(({ requests }) => requests > 0)?.p50_ms).toBeGreaterThan(0)
  })

  test('GET /api/channel/health reports a failing channel from the first failure, and the end of its cooldown from the fifth', async () => {
    fixture.upstream.script('bad', { kind: 'status', status: 500, body: errorBody('secret words') })
    await chat('bad')
    expect(await itemOf('bad')).toMatchObject({ state: 'failing', failures: 1, rests_until: null })
    for (let n = 0; n < 4; n += 1) await chat('bad')
    const bad = await itemOf('bad')
    expect(bad).toMatchObject({
      state: expect.stringMatching(/^(?:resting|probing)$/),
      failures: 5,
      last_error: { at: expect.any(Number), cause: 'status 500' },
    })
    expect(totals(bad)).toEqual([5, 5])
    expect(JSON.stringify(bad)).not.toMatch(/secret|sk-/)
    // The cooldown may be over before it is seen. Each failed trial doubles it.
    await vi.waitFor(
      async () => {
        const asked = Date.now()
        const seen = await itemOf('bad')
        if (seen?.state !== 'resting') await chat('bad')
        expect(seen?.state).toBe('resting')
        expect(seen?.rests_until).toBeGreaterThan(asked / 1000 - 1)
      },
      { timeout: 60_000 },
    )
  })

  test('GET /api/channel/health keeps the last error of a channel that works again', async () => {
    fixture.upstream.script('shaky', { kind: 'status', status: 503, body: errorBody('busy') })
    await chat('shaky')
    fixture.upstream.script('shaky', { kind: 'whole' })
    await chat('shaky')
    const shaky = await itemOf('shaky')
    expect(shaky).toMatchObject({ state: 'works', failures: 0, last_error: { cause: 'status 503' } })
    expect(totals(shaky)).toEqual([2, 1])
  })

  test('GET /api/channel/health counts the keys of a channel that its upstream refused', async () => {
    fixture.upstream.script('keyed', { kind: 'status', status: 401, body: errorBody('no such key') })
    await chat('keyed')
    expect(await itemOf('keyed')).toMatchObject({ keys: { total: 2, set_aside: expect.any(Number) } })
    const { keys } = (await itemOf('keyed')) as unknown as { keys: { set_aside: number } }
    expect(keys.set_aside).toBeGreaterThan(0)
  })

  test('GET /api/channel/health lists disabled channels with the state disabled, and the ids that the list of channels has', async () => {
    const { data: created } = await manage<{ ids: number[] }>(
      fixture.gateway.url,
      AS_ROOT,
      'POST /api/channel/',
      { name: 'spare', type: 1, key: 'k', base_url: 'http://127.0.0.1:9', models: 'm', status: 2 },
    )
    expect(await itemOf('spare')).toMatchObject({ id: created.ids[0], state: 'disabled' })
    const { data } = await manage<{ items: { id: number; name: string }[] }>(
      fixture.gateway.url,
      ADA,
      'GET /api/channel/',
    )
    const items = (await health(ADA)).data.items.map(({ id, name }) => [id, name])
    expect(items).toEqual(data.items.map(({ id, name }) => [id, name]))
  })

  test('GET /api/channel/health has the figures of the hour before a restart, and a channel that answered works', async () => {
    const figuresOf = async () =>
      (await health(ADA)).data.items.map((item) => [item.name, ...totals(item)] as const)
    expect(await chat('good')).toMatchObject({ status: 200 })
    const before = await figuresOf()
    expect(before.find(([name]) => name === 'good')?.[1]).toBeGreaterThan(0)
    expect(before.find(([name]) => name === 'shaky')).toEqual(['shaky', 2, 1])
    await fixture.gateway.restart()
    await expect.poll(figuresOf).toEqual(before)
    expect(await itemOf('good')).toMatchObject({ condition: 'works' })
    expect(await itemOf('shaky')).toMatchObject({ condition: 'works', last_error: { cause: 'status 503' } })
  })
})
