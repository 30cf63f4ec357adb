import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }

/** USD per million tokens; a unit is 1/500,000 USD, so that 2 USD per million is 1 unit for each token. */
const PRICES = {
  odd: { input: 0.6, output: 1.4, cache_read: 0.06 },
  tiered: { input: 2, output: 8, tiers: [{ above: 1000, input: 4, output: 16 }] },
  cheap: { input: 0.2, output: 0.4, tiers: [{ above: 500, input: 0.3, output: 0.4 }] },
}
const HALVED = { input: '0.3', output: '0.7', cache_read: '0.03' }

/** Counts of calls of `odd`: prompt, of which cached, and output. */
const ODD = [
  [7, 0, 3],
  [101, 50, 1],
  [1, 0, 1],
] as const

interface Result {
  readonly calls: number
  readonly charged: number
  readonly would_be: number
  readonly difference: number
  readonly by_model: readonly { readonly model: string; readonly would_be: number }[]
  readonly left_out: { readonly calls: number; readonly charged: number }
  readonly exact: boolean
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
    models: Object.fromEntries(Object.entries(PRICES).map(([name, price]) => [name, { price }])),
    groups: { default: { ratio: 1.5 } },
    channels: [channel('m', upstream.baseUrl('m'), { models: Object.keys(PRICES) })],
    users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken })],
  }))
  for (const [prompt, cached, output] of ODD) await called('odd', prompt, output, cached)
  await called('tiered', 1001, 10)
  await called('tiered', 1000, 10)
})
afterAll(() => fixture?.close())

async function called(model: string, prompt: number, output: number, cached = 0): Promise<void> {
  const usage = JSON.stringify({
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cached },
  })
  fixture.upstream.script('m', { kind: 'whole', usage })
  expect((await fixture.chat('ann', ask(model))).status).toBe(200)
}

const whatIf = (change: object, more: object = {}, account = ROOT_ACCOUNT) =>
  manage<Result>(fixture.gateway.url, account, 'POST /api/usage/what-if', {
    from: Math.floor(Date.now() / 1000) - 3600,
    to: Math.floor(Date.now() / 1000) + 3600,
    change,
    ...more,
  })

/** A charge in units, rounded half away from zero, at prices of millionths of a unit. */
function units(lines: readonly (readonly [count: number, usdPerMillion: number])[], ratio = 1.5): number {
  const micro = lines.reduce((sum, [count, price]) => sum + count * Math.round(price * 1000), 0)
  return Math.max(1, Math.round((micro * ratio * 500_000) / 1e9))
}

describe('the cost of calls at other prices', () => {
  test('recalculating the cost of past calls at unchanged prices gives exactly the charges of the call log', async () => {
    const { status, data } = await whatIf({})
    expect(status).toBe(200)
    const charged = databaseOf(fixture.gateway.dataDir)
      .usage()
      .reduce((sum, { quota }) => sum + quota, 0)
    expect(data).toMatchObject({ calls: 5, charged, would_be: charged, difference: 0 })
    expect(data).toMatchObject({ left_out: { calls: 0, charged: 0 }, exact: true })
  })

  test('recalculating the cost of past calls at half the price rounds once for each call, like a real charge', async () => {
    const { data } = await whatIf({ prices: { odd: HALVED } })
    const expected = ODD.map(([prompt, cached, output]) =>
      units([
        [prompt - cached, 0.3],
        [cached, 0.03],
        [output, 0.7],
      ]),
    )
    const sum = expected.reduce((all, one) => all + one, 0)
    expect(data.by_model.find(({ model }) => model === 'odd')).toMatchObject({ calls: 3, would_be: sum })
    expect(data.difference).toBe(data.would_be - data.charged)
  })

  test("recalculating the cost with another model uses that model's price and tiers, and another ratio replaces the group's", async () => {
    const { data } = await whatIf({ models: { tiered: 'cheap' }, ratios: { default: '2' } })
    const each = (prompt: number): number =>
      units(
        [
          [prompt, 0.3],
          [10, 0.4],
        ],
        2,
      )
    expect(data.by_model.find(({ model }) => model === 'tiered')).toMatchObject({
      calls: 2,
      would_be: each(1001) + each(1000),
    })
  })

  test('recalculating the cost covers the calls of a period, and says whether the log still has all of them', async () => {
    const now = Math.floor(Date.now() / 1000)
    const earlier = await whatIf({}, { from: now - 7_200, to: now - 3_600 })
    expect(earlier.data).toMatchObject({ calls: 0, charged: 0, exact: true })
    const { data } = await whatIf({}, { from: 0, to: now + 3_600 })
    expect(data).toMatchObject({ calls: 5, exact: false })
  })

  test('costs, lists, sums and files of a period have the calls that ended in it, however long before they began', async () => {
    using database = new DatabaseSync(join(fixture.gateway.dataDir, 'sluice.db'), { timeout: 60_000 })
    const began = (Date.now() - 25 * 3_600_000).toString(16).padStart(12, '0')
    const time = `${began.slice(0, 8)}-${began.slice(8)}`
    database.exec(`UPDATE usage_log SET id = '${time}' || substr(id, 14) WHERE model = 'tiered'`)
    const rows = databaseOf(fixture.gateway.dataDir).usage()
    const charged = rows.reduce((sum, { quota }) => sum + quota, 0)
    expect((await whatIf({})).data).toMatchObject({ calls: 5, charged, exact: true })
    const period = `start_timestamp=${Math.floor(Date.now() / 1000) - 3600}&end_timestamp=${Math.floor(Date.now() / 1000) + 60}`
    const { url } = fixture.gateway
    expect((await manage(url, ROOT_ACCOUNT, `GET /api/log/?${period}`)).data).toMatchObject({ total: 5 })
    expect((await manage(url, ROOT_ACCOUNT, `GET /api/log/stat?${period}`)).data).toMatchObject({
      quota: charged,
    })
    const file = await call(url, undefined, {
      method: 'GET',
      path: `/api/log/export?${period}`,
      headers: { authorization: ROOT_ACCOUNT.accessToken, 'gateway-user': '1' },
    })
    for (const { id } of rows) expect(file.text).toContain(id)
  })

  test('only administrators may recalculate costs, for calls that filters select; nothing is written', async () => {
    const rows = JSON.stringify(databaseOf(fixture.gateway.dataDir).usage())
    const { data } = await whatIf({ prices: { odd: HALVED } }, { filters: { model_name: 'tiered' } })
    expect(data).toMatchObject({ calls: 2, difference: 0 })
    expect(JSON.stringify(databaseOf(fixture.gateway.dataDir).usage())).toBe(rows)
    const refused = await whatIf({}, {}, ANN)
    expect([refused.status, refused.body['code']]).toEqual([403, 'role_too_low'])
  })

  test.each(['type', 'start_timestamp', 'end_timestamp', 'model'])(
    'a filter of recalculated costs that would select nothing is a 400: %s',
    async (name) => {
      const refused = await whatIf({}, { filters: { [name]: '1' } })
      expect([refused.status, refused.message]).toEqual([
        400,
        'filters: expected filters of the usage log, but for times and type',
      ])
    },
  )

  test.each([
    [{ prices: { odd: { input: '-1', output: '2' } } }, /change\.prices\.odd: input: expected/],
    [{ prices: { odd: { inptu: '1' } } }, /change\.prices\.odd: /],
    [{ ratios: { default: 'a lot' } }, /ratio/],
    [{ ratios: { default: -1 } }, /ratio: a decimal from 0 to 1000000 with at most 20 places/],
    [{ ratios: { default: 1_000_001 } }, /ratio: a decimal from 0 to 1000000 with at most 20 places/],
    [{ ratios: { default: '1e999' } }, /ratio: a decimal from 0 to 1000000 with at most 20 places/],
    [{ ratios: { default: '1e-21' } }, /ratio: a decimal from 0 to 1000000 with at most 20 places/],
    [
      { ratios: { default: '1e6' }, prices: { odd: { input: 1e6, output: 1e6, request: 1e6 } } },
      /change: expected prices and ratios with which a charge can be counted/,
    ],
    [{ models: { odd: 'unknown' } }, /the model unknown has no price/],
  ])('an invalid change of prices is a 400: %j', async (change, message) => {
    const refused = await whatIf(change)
    expect(refused.status).toBe(400)
    expect(refused.message).toMatch(message)
  })

  test('a call whose charge in the log cannot be reproduced is left out of recalculated costs, and reported separately', async () => {
    using database = new DatabaseSync(join(fixture.gateway.dataDir, 'sluice.db'), { timeout: 60_000 })
    database.exec("UPDATE usage_log SET quota = 12345 WHERE model = 'tiered' AND input_tokens = 1001")
    const { data } = await whatIf({ ratios: { default: '3' } })
    expect(data).toMatchObject({ calls: 4, left_out: { calls: 1, charged: 12_345 } })
    expect(data.charged).toBeLessThan(12_345)
  })
})
