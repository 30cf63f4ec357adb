import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const LONG = '60s'
/** Long enough for two calls on a busy machine, and short enough to wait for its end. */
const SHORT = '8s'
const SHORT_MS = 8_000

const model = (rate_limit?: object) => ({
  vendor: 'acme',
  price: PLAIN_PRICE,
  ...(rate_limit && { rate_limit }),
})

/** More requests than these tests make, in place of the limit of all keys. */
const AMPLE = { requests: 1_000, window: LONG }

/** Keys without separate limits may make three requests in a window. Each key and lane is used by one test. */
let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => {
    const lane = (name: string, fields: object = {}) => channel(name, upstream.baseUrl(name), { ...fields })
    return {
      options: { trusted_proxies: ['127.0.0.1/32'], keep_responses: '1h' },
      rate_limits: { key: { requests: 3, window: LONG }, relay: { requests: 8, window: LONG } },
      models: {
        free: model(),
        seldom: model({ requests: 2, window: LONG }),
        spent: model({ tokens: 100, window: LONG }),
        two: model(),
        tight: model(),
        shared: { ...model({ requests: 2, window: LONG }), fallback: ['other'] },
        other: model({ requests: 2, window: LONG }),
        full: model({ requests: 2, window: LONG }),
        stored: model({ requests: 2, window: LONG }),
      },
      guards: [{ name: 'words', do: 'block', match: { words: ['forbidden'] } }],
      channels: [
        lane('free'),
        lane('seldom'),
        lane('spent'),
        lane('first', { models: ['two'], priority: 1, rate_limit: { requests: 1, window: LONG } }),
        lane('second', { models: ['two'], rate_limit: { tokens: 15, window: LONG } }),
        lane('tight', { rate_limit: { requests: 1, window: SHORT } }),
        lane('stored'),
        lane('shared', { protocol: 'responses' }),
        lane('other', { protocol: 'responses' }),
        lane('full', { rate_limit: { requests: 1, window: LONG } }),
      ],
      users: [
        ROOT,
        user(2, 'ann', [
          ...'abcdefghij'.split('').map((name) => token(name)),
          token('more', { rate_limit: { requests: 5, window: LONG } }),
          token('fewer', { rate_limit: { requests: 1, window: LONG } }),
          token('unlimited', { rate_limit: AMPLE }),
          token('counted', { rate_limit: { tokens: 30, window: LONG } }),
        ]),
        user(3, 'bob', [
          token('poor', { remain_quota: 1, rate_limit: AMPLE }),
          token('thrifty', { budget: 1, budget_period: 'day', rate_limit: AMPLE }),
          token('guarded', { rate_limit: AMPLE }),
          token('late', { rate_limit: AMPLE }),
          token('reader', { rate_limit: AMPLE }),
          token('own', { rate_limit: { requests: 5, window: LONG } }),
        ]),
      ],
    }
  })
})
afterAll(() => fixture?.close())

let addresses = 0
/** A call from its own address, so that only the limits under test apply. */
function from(key: string, body: object, address = `198.51.100.${++addresses}`): Promise<FullResponse> {
  return fixture.chat(key, body, { headers: { 'x-forwarded-for': address } })
}

function expectLimited(answer: FullResponse, whose: string): void {
  expect(answer.status).toBe(429)
  expect(answer.json().error).toMatchObject({ type: 'rate_limit_error', code: 'rate_limited' })
  expect(answer.json().error.message).toContain(`the rate limit of ${whose} is reached`)
  expect(answer.json().error.message).toMatch(/ \(request id: [\w-]+\)$/)
  expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
  expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(60)
}

describe('the request limit of an API key', () => {
  test('the request limit of a key refuses the next call with 429 and retry-after, before an upstream request or a charge', async () => {
    for (let i = 0; i < 3; i++) expect((await from('a', ask('free'))).status).toBe(200)
    fixture.upstream.forget('free')
    expectLimited(await from('a', ask('free')), 'this API key')
    expectLimited(await from('a', askStream('free')), 'this API key')
    expect(fixture.upstream.received('free')).toHaveLength(0)
    const database = databaseOf(fixture.gateway.dataDir)
    const { id } = database.token('token-a')
    expect(database.usage().filter(({ token_id: of }) => of === id)).toHaveLength(3)
  })

  test('each API key has its own request limit', async () => {
    expect((await from('b', ask('free'))).status).toBe(200)
  })

  test.each([
    ['more', 5],
    ['fewer', 1],
  ])("the general request limit is replaced by the API key's own: %s", async (key, requests) => {
    for (let i = 0; i < requests; i++) expect((await from(key, ask('free'))).status).toBe(200)
    expectLimited(await from(key, ask('free')), 'this API key')
  })

  test('a refusal by the request limit of a key reaches messages clients in their error format', async () => {
    const body = { model: 'free', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
    const send = () =>
      fixture.chat('c', body, {
        path: '/v1/messages',
        headers: { 'x-forwarded-for': `203.0.113.${++addresses}` },
      })
    for (let i = 0; i < 3; i++) expect((await send()).status).toBe(200)
    const answer = await send()
    expect(answer.status).toBe(429)
    expect(Object.keys(answer.json())).toEqual(['type', 'error', 'request_id'])
    expect(answer.json().error.type).toBe('gateway_error')
    expect(answer.headers['retry-after']).toBeDefined()
  })

  test('the request limit of a key admits exactly the configured number of simultaneous calls', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => from('d', ask('free'))))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(3)
    expect(statuses.filter((status) => status === 429)).toHaveLength(9)
  })
})

describe('the request limit of a model', () => {
  test('the request limit of a model counts all clients, and a call that it refuses does not count against the key', async () => {
    expect((await from('e', ask('seldom'))).status).toBe(200)
    expect((await from('f', ask('seldom'))).status).toBe(200)
    for (let i = 0; i < 3; i++) expectLimited(await from('g', ask('seldom')), 'the model seldom')
    for (let i = 0; i < 3; i++) expect((await from('g', ask('free'))).status).toBe(200)
  })
})

const remaining = ({ headers }: FullResponse): string | undefined =>
  headers['x-ratelimit-remaining-requests']?.toString()

describe('a call that is refused before a provider is asked', () => {
  test.each([
    ['insufficient quota', 'poor', ask('shared'), 403, 'insufficient_quota'],
    ['a budget', 'thrifty', ask('shared'), 403, 'budget_exceeded'],
    [
      'a guard',
      'guarded',
      ask('shared', { messages: [{ role: 'user', content: 'forbidden' }] }),
      400,
      'guard_blocked',
    ],
  ])(
    'a call refused for %s does not count against the limit of its model and of the fallbacks, which others share',
    async (_, key, body, status, code) => {
      fixture.upstream.forget('shared')
      for (let i = 0; i < 3; i++) {
        const answer = await from(key, body)
        expect([answer.status, answer.json().error.code], answer.text).toEqual([status, code])
        expect(remaining(answer)).toBe('2')
      }
      expect(remaining(await from(key, { ...body, model: 'other' }))).toBe('2')
      expect(fixture.upstream.received('shared')).toHaveLength(0)
    },
  )

  test('a call refused by a guard counts against the limit of its key', async () => {
    const body = ask('free', { messages: [{ role: 'user', content: 'forbidden' }] })
    expect(remaining(await from('own', body))).toBe('4')
    expect(remaining(await from('own', body))).toBe('3')
  })

  test('a request for a stored response counts against the limit of its model', async () => {
    const headers = { 'x-forwarded-for': '198.51.100.250' }
    const made = await fixture.chat(
      'reader',
      { model: 'stored', input: 'hi' },
      { path: '/v1/responses', headers },
    )
    const path = `/v1/responses/${(made.json() as unknown as { id: string }).id}`
    const read = () => call(fixture.gateway.url, undefined, { key: 'reader', method: 'GET', path, headers })
    expect((await read()).status).toBe(200)
    expectLimited(await read(), 'the model stored')
  })

  test('a call refused because every channel is at its limit does not count against the limit of its model', async () => {
    expect(remaining(await from('late', ask('full')))).toBe('1')
    for (let i = 0; i < 2; i++) {
      const answer = await from('late', ask('full'))
      expectLimited(answer, 'every channel for this model')
      expect(remaining(answer)).toBe('1')
    }
  })
})

describe('the request limit of a channel', () => {
  test('a channel at its request limit is skipped; 429 is returned only when no channel is left', async () => {
    fixture.upstream.script('second', { kind: 'whole', usage: usageText(10, 5) })
    for (let i = 0; i < 2; i++) expect((await from('unlimited', ask('two'))).status).toBe(200)
    expect(fixture.upstream.received('first')).toHaveLength(1)
    expect(fixture.upstream.received('second')).toHaveLength(1)
    expectLimited(await from('unlimited', ask('two')), 'every channel for this model')
    expect(fixture.upstream.received('second')).toHaveLength(1)
  })

  test('a channel at its request limit is used again when the window of the limit has passed', async () => {
    let started = 0
    const first = async (): Promise<number> => {
      started = performance.now()
      return (await from('unlimited', ask('tight'))).status
    }
    expect(await first()).toBe(200)
    let refused = await from('unlimited', ask('tight'))
    // On a busy machine the window may be over by the second call.
    while (refused.status === 200 && performance.now() - started >= SHORT_MS) {
      await expect.poll(first, { interval: 100 }).toBe(200)
      refused = await from('unlimited', ask('tight'))
    }
    expect(refused.status).toBe(429)
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(SHORT_MS / 1000)
    await expect.poll(async () => (await from('unlimited', ask('tight'))).status, { interval: 100 }).toBe(200)
    expect(performance.now() - started).toBeGreaterThanOrEqual(SHORT_MS - 100)
  })
})

describe('token limits count prompt and output', () => {
  beforeAll(() => {
    fixture.upstream.script('free', { kind: 'whole', usage: usageText(10, 5) })
    fixture.upstream.script('spent', { kind: 'whole', usage: usageText(60, 39) })
  })

  test('the token rate limits of a key refuse calls with 429 when they are used up', async () => {
    for (let i = 0; i < 2; i++) expect((await from('counted', ask('free'))).status).toBe(200)
    expectLimited(await from('counted', ask('free')), 'this API key')
  })

  test('the token rate limit of a model counts the calls of all clients', async () => {
    expect((await from('h', ask('spent'))).status).toBe(200)
    // 99 of 100 are used, so that one more call is admitted, whatever its cost.
    expect((await from('i', ask('spent'))).status).toBe(200)
    expectLimited(await from('j', ask('spent')), 'the model spent')
  })
})

describe('the limit of relay calls of an address', () => {
  test('the rate limit of an address counts every call, also refused ones, and no calls of other addresses', async () => {
    for (let i = 0; i < 4; i++) expect((await from('unlimited', ask('free'), '192.0.2.1')).status).toBe(200)
    for (let i = 0; i < 4; i++) expect((await from('nobody', ask('free'), '192.0.2.1')).status).toBe(401)
    expectLimited(await from('unlimited', ask('free'), '192.0.2.1'), 'this address')
    expect((await from('unlimited', ask('free'), '192.0.2.2')).status).toBe(200)
  })
})
