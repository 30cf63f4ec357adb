import Anthropic from '@anthropic-ai/sdk'
import OpenAI, { RateLimitError } from 'openai'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const HOUR = '1h'
/** Names of the headers of both forms. */
const STATED = /^(?:x|anthropic)-ratelimit-/

let fixture: Fixture
beforeAll(async () => {
  const model = (rate_limit?: object) => ({
    vendor: 'acme',
    price: PLAIN_PRICE,
    ...(rate_limit && { rate_limit }),
  })
  const five = { rate_limit: { requests: 5, window: HOUR } }
  fixture = await startFixture((upstream) => ({
    options: { body_limit: '1MiB' },
    models: { m: model(), tight: model({ requests: 2, tokens: 1_000, window: HOUR }) },
    channels: [channel('m', upstream.baseUrl('m')), channel('tight', upstream.baseUrl('tight'))],
    users: [
      ROOT,
      user(2, 'ann', [token('plain')]),
      user(4, 'eve', [token('banned', five)], { status: 2 }),
      user(
        3,
        'bob',
        [
          ...'abcdefgh'.split('').map((name) => token(name, five)),
          token('many', { rate_limit: { requests: 100, window: HOUR } }),
          token('limited', { ...five, model_limits_enabled: true, model_limits: 'x' }),
          token('wide', { rate_limit: { requests: 500, window: HOUR } }),
          token('disabled', { ...five, status: 2 }),
          token('expired', { ...five, expired_time: 1 }),
          token('exhausted', { ...five, unlimited_quota: false, remain_quota: 0 }),
          token('poor', { ...five, unlimited_quota: false, remain_quota: 1 }),
          token('elsewhere', { ...five, allow_ips: '192.0.2.1' }),
        ],
        { rate_limit: { requests: 200, tokens: 50_000, window: HOUR } },
      ),
    ],
  }))
})
afterAll(() => fixture?.close())

const statedIn = ({ headers }: FullResponse): readonly string[] =>
  Object.keys(headers)
    .filter((name) => STATED.test(name))
    .toSorted()

const ofUser = (answer: FullResponse): number => Number(answer.headers['x-ratelimit-remaining-tokens'])

describe('the limits of a key', () => {
  test('answers, whole and streamed, state the tightest rate limits of requests and tokens in their headers', async () => {
    fixture.upstream.script('m', { kind: 'whole', content: 'Hello.', usage: usageText(10, 5) })
    const whole = await fixture.chat('a', ask('m'))
    expect(whole.status).toBe(200)
    expect(whole.headers).toMatchObject({
      'x-ratelimit-limit-requests': '5',
      'x-ratelimit-remaining-requests': '4',
      // A busy machine may take seconds for the call.
      'x-ratelimit-reset-requests': expect.stringMatching(/^(?:59m\d+s|1h0m0s)$/),
      'x-ratelimit-limit-tokens': '50000',
    })
    fixture.upstream.script('m', { kind: 'stream', usage: usageText(10, 5) })
    const streamed = await fixture.chat('a', askStream('m'))
    expect(streamed.headers['content-type']).toContain('text/event-stream')
    expect(streamed.headers['x-ratelimit-remaining-requests']).toBe('3')
    expect(ofUser(streamed)).toBeLessThanOrEqual(ofUser(whole))
    fixture.upstream.script('m', { kind: 'whole', content: 'Hello.', usage: usageText(10, 5) })
    // Once a call is settled, its tokens count.
    expect(50_000 - ofUser(await fixture.chat('a', ask('m')))).toBeGreaterThanOrEqual(15)
  })

  test("the headers of an answer state the model's rate limit where less of it remains than of the key's limit", async () => {
    const first = await fixture.chat('b', ask('tight'))
    expect(first.headers).toMatchObject({
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-limit-tokens': '1000',
    })
    await fixture.chat('c', ask('tight'))
    const refused = await fixture.chat('c', ask('tight'))
    expect(refused.status).toBe(429)
    expect(refused.headers).toMatchObject({
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '0',
    })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  })

  test.each([
    ['a body that is no JSON', 'd', '{', 400],
    ['a body that is too large', 'd', JSON.stringify({ ...ask('m'), pad: 'x'.repeat(1_100_000) }), 413],
    ['an unknown model', 'd', JSON.stringify(ask('none')), 503],
    ['a model that the key may not use', 'limited', JSON.stringify(ask('m')), 403],
    ['a parameter out of range', 'd', JSON.stringify(ask('m', { max_tokens: -2 })), 400],
    ['a key that is disabled', 'disabled', JSON.stringify(ask('m')), 401],
    ['a key that has expired', 'expired', JSON.stringify(ask('m')), 401],
    ['a key whose quota is exhausted', 'exhausted', JSON.stringify(ask('m')), 401],
    ['an address that the key may not be used from', 'elsewhere', JSON.stringify(ask('m')), 403],
    ['a user who is disabled', 'banned', JSON.stringify(ask('m')), 403],
  ])(
    'a refusal for %s states the rate limits of the key, and does not count against them',
    async (_, key, body, status) => {
      const answer = await call(fixture.gateway.url, body, { key })
      expect(answer.status).toBe(status)
      expect(answer.headers).toMatchObject({
        'x-ratelimit-limit-requests': '5',
        'x-ratelimit-remaining-requests': '5',
      })
    },
  )

  test('a refusal for a quota that is too small states the rate limits of the key in its headers', async () => {
    const answer = await fixture.chat('poor', ask('m'))
    expect(answer.status).toBe(403)
    expect(answer.headers['x-ratelimit-limit-requests']).toBe('5')
  })

  test('a refusal by the rate limit of an address states the rate limits of the API key in its headers, if the key was used before', async () => {
    const crowded = await startFixture((upstream) => ({
      rate_limits: { relay: { requests: 2, window: HOUR } },
      models: { m: { vendor: 'acme', price: PLAIN_PRICE } },
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('used', { rate_limit: { requests: 9, window: HOUR } })])],
    }))
    onTestFinished(() => crowded.close())
    for (const remaining of ['8', '7']) {
      const answer = await crowded.chat('used', ask('m'))
      expect(answer.status, answer.text).toBe(200)
      expect(answer.headers['x-ratelimit-remaining-requests']).toBe(remaining)
    }
    const refused = await crowded.chat('used', ask('m'))
    expect(refused.status).toBe(429)
    expect(refused.text).toContain('this address')
    expect(refused.headers).toMatchObject({
      'x-ratelimit-limit-requests': '9',
      'x-ratelimit-remaining-requests': '7',
    })
    expect(statedIn(await crowded.chat('nobody', ask('m')))).toEqual([])
  })

  test("a refusal for an expired key states the key's rate limits in Anthropic's headers", async () => {
    const answer = await call(fixture.gateway.url, '{}', {
      path: '/v1/messages',
      headers: { 'x-api-key': 'sk-expired' },
    })
    expect(answer.status).toBe(401)
    expect(answer.headers['anthropic-ratelimit-requests-remaining']).toBe('5')
  })

  test.each([
    '/v1/completions',
    '/v1/embeddings',
    '/v1/responses',
    '/v1/moderations',
    '/v1/rerank',
    '/v1/images/generations',
    '/v1/audio/speech',
  ])("answers at %s state the key's rate limits in OpenAI's headers", async (path) => {
    const answer = await call(fixture.gateway.url, '{}', { path, key: 'e' })
    expect(statedIn(answer)).toEqual([
      'x-ratelimit-limit-requests',
      'x-ratelimit-limit-tokens',
      'x-ratelimit-remaining-requests',
      'x-ratelimit-remaining-tokens',
      'x-ratelimit-reset-requests',
      'x-ratelimit-reset-tokens',
    ])
  })

  test.each(['/v1/messages', '/v1/messages/count_tokens'])(
    "answers at %s state the key's rate limits in Anthropic's headers",
    async (path) => {
      const answer = await call(fixture.gateway.url, '{}', {
        path,
        headers: { 'x-api-key': 'sk-e' },
      })
      expect(statedIn(answer)).toEqual([
        'anthropic-ratelimit-requests-limit',
        'anthropic-ratelimit-requests-remaining',
        'anthropic-ratelimit-requests-reset',
        'anthropic-ratelimit-tokens-limit',
        'anthropic-ratelimit-tokens-remaining',
        'anthropic-ratelimit-tokens-reset',
      ])
    },
  )

  test('answers to Gemini clients, unknown keys and keys without limits have no rate limit headers', async () => {
    const gemini = await call(
      fixture.gateway.url,
      JSON.stringify({ contents: [{ parts: [{ text: 'hi' }] }] }),
      {
        path: '/v1beta/models/m:generateContent',
        headers: { 'x-goog-api-key': 'sk-e' },
      },
    )
    expect(statedIn(gemini)).toEqual([])
    const unknown = await fixture.chat('nobody', ask('m'))
    expect(unknown.status).toBe(401)
    expect(statedIn(unknown)).toEqual([])
    expect(statedIn(await fixture.chat('plain', ask('m')))).toEqual([])
  })

  test('rate limit headers of a provider are not forwarded to the client', async () => {
    const headers = {
      'x-ratelimit-limit-requests': '7',
      'x-ratelimit-remaining-requests': '6',
      'anthropic-ratelimit-requests-limit': '8',
    }
    fixture.upstream.script('m', { kind: 'whole', content: 'Hello.', usage: usageText(10, 5), headers })
    expect(statedIn(await fixture.chat('plain', ask('m')))).toEqual([])
    expect((await fixture.chat('wide', ask('m'))).headers['x-ratelimit-limit-requests']).toBe('200')
  })

  test('the least number of remaining requests in the headers of 64 simultaneous answers is the limit less these 64 calls', async () => {
    const answers = await Promise.all(Array.from({ length: 64 }, () => fixture.chat('many', ask('m'))))
    const remainders = answers.map(({ headers }) => Number(headers['x-ratelimit-remaining-requests']))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(Math.max(...remainders)).toBeLessThan(100)
    expect(Math.min(...remainders)).toBe(36)
    const next = await fixture.chat('many', ask('m'))
    expect(Number(next.headers['x-ratelimit-remaining-requests'])).toBe(35)
  })
})

const ANTHROPIC_FORMS = [
  ['limit', /^\d+$/],
  ['remaining', /^\d+$/],
  ['reset', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/],
] as const

describe('official clients', () => {
  const messages = [{ role: 'user' as const, content: 'hi' }]

  test('the OpenAI client finds the rate limit headers of an answer and of a refusal', async () => {
    const client = new OpenAI({ apiKey: 'sk-f', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
    const ask = () => client.chat.completions.create({ model: 'm', messages }).withResponse()
    for (const left of ['4', '3', '2', '1', '0'])
      expect((await ask()).response.headers.get('x-ratelimit-remaining-requests')).toBe(left)
    const error = await ask().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RateLimitError)
    const { headers } = error as RateLimitError
    for (const name of ['limit', 'remaining', 'reset'])
      for (const counted of ['requests', 'tokens'])
        expect(headers?.get(`x-ratelimit-${name}-${counted}`)).toMatch(/^\d+(?:ms|s|[mh][\dms]+)?$/)
    expect(headers?.get('x-ratelimit-remaining-requests')).toBe('0')
    expect(headers?.get('x-ratelimit-reset-requests')).toMatch(/^(?:59m\d+s|1h0m0s)$/)
    expect(Number(headers?.get('retry-after'))).toBeGreaterThan(3_500)
  })

  test('the Anthropic client finds the rate limit headers of an answer and of a refusal', async () => {
    const client = new Anthropic({ apiKey: 'sk-g', baseURL: fixture.gateway.url, maxRetries: 0 })
    const ask = () => client.messages.create({ model: 'm', max_tokens: 9, messages }).withResponse()
    for (const left of ['4', '3', '2', '1', '0'])
      expect((await ask()).response.headers.get('anthropic-ratelimit-requests-remaining')).toBe(left)
    const error = await ask().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Anthropic.RateLimitError)
    const { headers } = error as InstanceType<typeof Anthropic.RateLimitError>
    for (const counted of ['requests', 'tokens'])
      for (const [name, form] of ANTHROPIC_FORMS)
        expect(headers?.get(`anthropic-ratelimit-${counted}-${name}`)).toMatch(form)
    expect(headers?.get('anthropic-ratelimit-requests-remaining')).toBe('0')
    const resetMs = Date.parse(headers?.get('anthropic-ratelimit-requests-reset') ?? '') - Date.now()
    expect(resetMs).toBeGreaterThan(3_500_000)
    expect(resetMs).toBeLessThan(3_602_000)
  })
})
