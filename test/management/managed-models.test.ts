import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, PLAIN_PRICE, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { dateClock } from '../fixtures/moved-clock.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const ADA = { id: 2, accessToken: 'the-access-token-of-ada' }
const ANN = { id: 3, accessToken: 'the-access-token-of-ann' }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 } },
    groups: { default: { ratio: 1 }, vip: { ratio: 1, open: false } },
    models: { filed: { price: { input: 3, output: 15, tiers: [{ above: 1000, input: 6, output: 20 }] } } },
    channels: [
      channel('up', upstream.baseUrl('up'), { models: ['filed', 'novel', 'gpt-4o'], groups: ['default'] }),
      channel('second', upstream.baseUrl('up'), { models: ['gpt-4o'], groups: ['vip'] }),
    ],
    users: [
      ROOT,
      user(2, 'ada', [], { access_token: ADA.accessToken, role: 10 }),
      user(3, 'ann', [token('ann')], { access_token: ANN.accessToken }),
    ],
  }))
  fixture.upstream.script('up', { kind: 'whole', usage: usageText(1000, 100, 0) })
})
afterAll(() => fixture?.close())

interface Model {
  readonly model: string
  readonly price: Readonly<Record<string, unknown>> | null
  readonly source: string
  readonly version: string
}
const list = (account: Account) => manage<Model[]>(fixture.gateway.url, account, 'GET /api/models')
const modelOf = async (name: string): Promise<Model | undefined> =>
  (await list(ADA)).data.find(({ model }) => model === name)
const put = (body: object, account: Account = AS_ROOT) =>
  manage(fixture.gateway.url, account, 'PUT /api/models/price', body)
const charged = async (model: string) => {
  const answer = await fixture.chat('ann', ask(model))
  expect(answer.status).toBe(200)
  return databaseOf(fixture.gateway.dataDir).usageOf(String(answer.headers['x-request-id']))?.quota
}

test('a model that its provider will shut down has the date, a successor, and the keys that called it in seven days', async () => {
  const clock = dateClock()
  const end = new Date(Date.now() + 40 * 86_400_000).toISOString().slice(0, 10)
  const ending = await startFixture(
    (upstream) => {
      upstream.decide('ending', ({ method }) =>
        method === 'GET'
          ? {
              kind: 'status',
              status: 200,
              body: JSON.stringify({ data: [{ id: 'ending', shutdown_date: end }] }),
            }
          : { kind: 'whole' },
      )
      return {
        options: { model_dates: true },
        models: { ...priced(['ending', 'lasting']), ending: { price: PLAIN_PRICE, successor: 'lasting' } },
        channels: [
          channel('ending', upstream.baseUrl('ending')),
          channel('lasting', upstream.baseUrl('lasting')),
        ],
        users: [
          ROOT,
          user(2, 'ada', [], { access_token: ADA.accessToken, role: 10 }),
          user(3, 'ann', [token('ann'), token('bob'), token('old')], { access_token: ANN.accessToken }),
        ],
      }
    },
    { env: clock.env },
  )
  onTestFinished(() => ending.close())
  const models = async () =>
    Object.fromEntries(
      (
        await manage<{ model: string; shutdown_date: string | null }[]>(
          ending.gateway.url,
          ADA,
          'GET /api/models',
        )
      ).data.map((one) => [one.model, one]),
    )
  const before = -8 * 86_400
  clock.move(before)
  await ending.chat('old', ask('ending'))
  clock.move(0)
  for (const key of ['bob', 'bob', 'ann']) await ending.chat(key, ask('ending'))
  await ending.chat('ann', ask('lasting'))
  await expect.poll(async () => (await models())['ending']?.shutdown_date, { timeout: 60_000 }).toBe(end)
  const called = (name: string, calls: number) => ({
    id: expect.any(Number),
    name: `token-${name}`,
    user_id: 3,
    username: 'ann',
    calls,
  })
  expect((await models())['ending']).toMatchObject({
    successor: 'lasting',
    calls_30d: 4,
    keys_7d: [called('bob', 2), called('ann', 1)],
  })
  expect((await models())['lasting']).toMatchObject({ shutdown_date: null, successor: null, keys_7d: [] })
  // Members see the date, and not who calls the model.
  const { data: shown } = await manage<Record<string, unknown>[]>(ending.gateway.url, ANN, 'GET /api/pricing')
  expect(shown.map(({ model_name: name, shutdown_date: on }) => [name, on])).toEqual([
    ['ending', end],
    ['lasting', undefined],
  ])
  expect(JSON.stringify(shown)).not.toContain('token-bob')
})

describe('models and their prices', () => {
  test('the list of models shows admins the source of each price, the channels and the groups of a model', async () => {
    expect((await list(ANN)).status).toBe(403)
    expect((await list({ id: 2, accessToken: 'wrong' })).status).toBe(401)
    const { data } = await list(ADA)
    expect((await list(AS_ROOT)).data).toEqual(data)
    expect(data.map(({ model, source }) => [model, source])).toEqual([
      ['filed', 'file'],
      ['gpt-4o', 'built-in'],
      ['novel', 'none'],
    ])
    expect(data[0]).toMatchObject({
      vendor: null,
      price: { input: '3', output: '15', cache_read: '0.3', request: '0' },
      tiers: [{ above: 1000, input: '6', output: '20' }],
      channels: ['up'],
      groups: ['default'],
    })
    expect(data[1]).toMatchObject({
      vendor: 'openai',
      channels: ['up', 'second'],
      groups: ['default', 'vip'],
    })
    expect(data[2]).toMatchObject({ price: null, tiers: [], calls_30d: 0 })
  })

  test('prices of models are set by root, one by one, and apply to the next call', async () => {
    const price = { input: '2.5', output: 10, tiers: [{ above: 500, input: 5, output: 20 }] }
    expect((await put({ model: 'novel', price }, ADA)).status).toBe(403)
    expect((await put({ model: 'novel', price }, ANN)).status).toBe(403)
    expect((await put({ model: 'novel', price })).status).toBe(200)
    // Beyond 500 tokens of input: (1000 × 5 + 100 × 20) millionths of a dollar, of 500,000 units each.
    expect(await charged('novel')).toBe(3500)
    expect(await modelOf('novel')).toMatchObject({
      source: 'set',
      price: { input: '2.5', output: '10' },
      tiers: [{ above: 500, input: '5' }],
      calls_30d: 1,
    })
    const whole = (await modelOf('novel'))?.price
    expect((await put({ model: 'novel', price: whole })).status).toBe(200)
    expect((await modelOf('novel'))?.price).toEqual(whole)
  })

  test("setting a model's price to null restores its built-in price", async () => {
    const before = await modelOf('gpt-4o')
    expect((await put({ model: 'gpt-4o', price: { input: 1, output: 1 } })).status).toBe(200)
    expect((await modelOf('gpt-4o'))?.source).toBe('set')
    expect((await put({ model: 'gpt-4o', price: null })).status).toBe(200)
    expect(await modelOf('gpt-4o')).toEqual(before)
  })

  test('a price that is set for a model replaces its ratios; a completion ratio that is set later replaces the output price alone', async () => {
    const option = (key: string, value: object) =>
      manage(fixture.gateway.url, AS_ROOT, 'PUT /api/option/', { key, value: JSON.stringify(value) })
    expect((await option('ModelRatio', { 'gpt-4o': 7 })).status).toBe(200)
    expect((await put({ model: 'gpt-4o', price: { input: 1, output: 4, cache_read: 0.5 } })).status).toBe(200)
    expect(await modelOf('gpt-4o')).toMatchObject({ price: { input: '1', output: '4', cache_read: '0.5' } })
    expect((await option('CompletionRatio', { 'gpt-4o': 3 })).status).toBe(200)
    expect(await modelOf('gpt-4o')).toMatchObject({ price: { input: '1', output: '3', cache_read: '0.5' } })
    await put({ model: 'gpt-4o', price: null })
  })

  test("a change of a model's price that names an outdated version is a 409, and changes nothing", async () => {
    const seen = await modelOf('novel')
    const first = { model: 'novel', price: { input: 4, output: 4 }, version: seen?.version }
    const changed = await put(first)
    expect(changed).toMatchObject({ status: 200, data: await modelOf('novel') })
    const second = await put({ ...first, price: { input: 5, output: 5 } })
    expect(second).toMatchObject({ status: 409, body: { code: 'changed_meanwhile', data: changed.data } })
    expect(await modelOf('novel')).toMatchObject({ price: { input: '4' } })
    expect(
      (await put({ model: 'novel', price: null, version: (await modelOf('novel'))?.version })).status,
    ).toBe(200)
  })

  test("a model's price that was set over HTTP survives a restart", async () => {
    await put({ model: 'novel', price: { input: '0.123456789', output: 1 } })
    await fixture.gateway.restart()
    expect(await modelOf('novel')).toMatchObject({ source: 'set', price: { input: '0.123456789' } })
  })

  test.each([
    ['a price of the file', { model: 'filed', price: null }, 409],
    ['no model', { model: '', price: null }, 400],
    ['no price', { model: 'novel' }, 400],
    ['a negative price', { model: 'novel', price: { input: -1, output: 1 } }, 400],
    ['an unknown kind', { model: 'novel', price: { input: 1, output: 1, colour: 2 } }, 400],
    ['output without a price', { model: 'novel', price: { input: 1 } }, 400],
  ])("an invalid change of a model's price is refused, and changes nothing: %s", async (_, body, status) => {
    const before = (await list(ADA)).data
    expect((await put(body)).status).toBe(status)
    expect((await list(ADA)).data).toEqual(before)
  })
})

describe('prices of several models', () => {
  const putAll = (items: readonly object[], account: Account = AS_ROOT) =>
    manage(fixture.gateway.url, account, 'PUT /api/models/prices', { items })

  test('the prices of several models are set in one request, all or none, and a refusal names the model', async () => {
    const price = { input: '1', output: '2' }
    const version = (await modelOf('novel'))?.version
    expect((await putAll([{ model: 'novel', price }], ADA)).status).toBe(403)
    const wrong = await putAll([
      { model: 'novel', price },
      { model: 'gpt-4o', price: { input: '1', output: '-2' } },
    ])
    expect([wrong.status, wrong.message]).toEqual([400, expect.stringContaining('gpt-4o')])
    const managed = await putAll([
      { model: 'novel', price },
      { model: 'filed', price },
    ])
    expect([managed.status, managed.message]).toEqual([409, expect.stringContaining('filed')])
    const outdated = await putAll([
      { model: 'novel', price, version },
      { model: 'gpt-4o', price, version: '0000000000000000' },
    ])
    expect([outdated.status, outdated.message]).toEqual([409, expect.stringContaining('gpt-4o')])
    expect(
      (
        await putAll([
          { model: 'novel', price },
          { model: 'novel', price },
        ])
      ).status,
    ).toBe(400)
    expect((await putAll([])).status).toBe(400)
    expect((await modelOf('novel'))?.version).toBe(version)

    const done = await putAll([
      { model: 'novel', price, version },
      { model: 'gpt-4o', price },
    ])
    expect(done.status).toBe(200)
    for (const name of ['novel', 'gpt-4o'])
      expect(await modelOf(name)).toMatchObject({ source: 'set', price: { input: '1', output: '2' } })
  })

  test('GET /api/pricing names for members the endpoints through which each model can be called', async () => {
    const { body } = await manage(fixture.gateway.url, ANN, 'GET /api/pricing')
    const models = body['data'] as readonly { model_name: string; endpoints: readonly string[] }[]
    const filed = models.find(({ model_name }) => model_name === 'filed')
    expect(filed?.endpoints).toEqual(expect.arrayContaining(['chat', 'messages', 'responses', 'gemini']))
  })
})
