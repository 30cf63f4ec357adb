import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { casesByTier } from '../runner/tier.ts'

let fixture: Fixture
let configure: (options: Record<string, unknown>) => Configuration
beforeAll(async () => {
  fixture = await startFixture((upstream) => {
    configure = (options) => ({
      options,
      rate_limits: { global: { requests: 0 } },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [
        { ...ROOT, quota: 2_000_000 },
        user(
          2,
          'ann',
          [
            token('ann', { remain_quota: 1_000_000, expired_time: 4_000_000_000 }),
            token('unlimited'),
            token('calling', { remain_quota: 1_000_000 }),
            token('expired', { remain_quota: 500_000, expired_time: 1_000_000_000 }),
            token('exhausted', { remain_quota: 0 }),
            token('disabled', { status: 2 }),
            token('deleted'),
            token('elsewhere', { allow_ips: '192.0.2.1' }),
          ],
          { quota: 2_000_000 },
        ),
        user(3, 'banned', [token('ofbanned')], { status: 2, quota: 0 }),
      ],
    })
    return configure({})
  })
  const database = databaseOf(fixture.gateway.dataDir)
  database.write("update tokens set used_quota = 250000 where name = 'token-ann'")
  database.write("update tokens set used_quota = 3 where name = 'token-unlimited'")
  database.write("update users set used_quota = 500000 where username = 'ann'")
  database.write("update tokens set deleted_time = 1700000000 where name = 'token-deleted'")
})
afterAll(() => fixture?.close())

type What = 'subscription' | 'usage'
const get = (what: What, key?: string, query = '', prefix = '/v1'): Promise<FullResponse> =>
  call(fixture.gateway.url, undefined, {
    method: 'GET',
    path: `${prefix}/dashboard/billing/${what}${query}`,
    ...(key !== undefined && { key }),
  })
const subscription = (limit: string, until: number): string =>
  `{"object":"billing_subscription","has_payment_method":true,"soft_limit_usd":${limit},` +
  `"hard_limit_usd":${limit},"system_hard_limit_usd":${limit},"access_until":${until}}`
const usage = (total: string): string => `{"object":"list","total_usage":${total}}`

async function bare(what: What, key: string, query?: string, prefix?: string): Promise<string> {
  const answer = await get(what, key, query, prefix)
  expect(answer.status, answer.text).toBe(200)
  expect(answer.headers['content-type']).toBe('application/json')
  return answer.text
}

/** Ways to show quota. By day four are tried, because a changed configuration takes a third of a start. */
const DISPLAYS = casesByTier(4, [
  ['USD', {}, '2.5', '50'],
  ['CNY at a rate of its own', { display: 'CNY', usd_exchange_rate: 7.123456 }, '17.80864', '356.1728'],
  ['CNY', { display: 'CNY' }, '18.25', '365'],
  ['TOKENS', { display: 'TOKENS' }, '1250000', '25000000'],
  ['USD by threes', { quota_per_unit: 3 }, '416666.666666666667', '8333333.333333333333'],
  ['USD by millions', { quota_per_unit: 9_000_000 }, '0.138888888889', '2.777777777778'],
] as const)

describe.each(DISPLAYS)('granted and used quota of a token in %s', (_, options, granted, consumed) => {
  beforeAll(() => fixture.gateway.apply(configure(options)))

  test('the billing endpoints report the granted and the used quota of a token exactly', async () => {
    expect(await bare('subscription', 'ann')).toBe(subscription(granted, 4_000_000_000))
    expect(await bare('usage', 'ann')).toBe(usage(consumed))
  })

  test('the billing endpoints report 100000000 as the granted quota of an unlimited token', async () => {
    expect(await bare('subscription', 'unlimited')).toBe(subscription('100000000', 0))
  })
})

describe('granted and used quota of a user, where token_stats is off', () => {
  beforeAll(() => fixture.gateway.apply(configure({ token_stats: false })))

  test('the billing endpoints report 100000000 as the granted quota of an unlimited token, also where token_stats is off', async () => {
    expect(await bare('subscription', 'unlimited')).toBe(subscription('100000000', 0))
    expect(await bare('usage', 'unlimited')).toBe(usage('100'))
  })

  test.each(['ann', 'expired'])(
    `the billing endpoints show the user's quota to the key "%s", without an expiry time, where token_stats is off`,
    async (key) => {
      expect(await bare('subscription', key)).toBe(subscription('5', 0))
      expect(await bare('usage', key)).toBe(usage('100'))
    },
  )
})

describe('the billing endpoints', () => {
  beforeAll(() => fixture.gateway.apply(configure({})))

  test('the billing endpoints are served with and without /v1 in the path', async () => {
    expect(await bare('subscription', 'ann', '', '')).toBe(subscription('2.5', 4_000_000_000))
    expect(await bare('usage', 'ann', '', '')).toBe(usage('50'))
  })

  test('the billing endpoints ignore the dates in their query', async () => {
    for (const query of ['?start_date=2026-01-01&end_date=2026-02-01', '?start_date=x', '?%']) {
      expect(await bare('usage', 'ann', query)).toBe(usage('50'))
    }
  })

  test('the billing endpoints show a charge as soon as the response is complete', async () => {
    fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    await fixture.chat('calling', ask('m'))
    // 30 of 500,000 units are 0.00006 dollars.
    expect(await bare('usage', 'calling')).toBe(usage('0.006'))
    expect(await bare('subscription', 'calling')).toBe(subscription('2', 0))
  })

  test('the billing endpoints answer requests with expired or exhausted keys', async () => {
    expect(await bare('subscription', 'expired')).toBe(subscription('1', 1_000_000_000))
    expect(await bare('usage', 'exhausted')).toBe(usage('0'))
  })

  test.each([
    [undefined, 401, 'authentication_error', 'missing_api_key'],
    ['nobody', 401, 'authentication_error', 'invalid_api_key'],
    ['disabled', 401, 'authentication_error', 'token_disabled'],
    ['deleted', 401, 'authentication_error', 'token_deleted'],
    ['ofbanned', 403, 'permission_error', 'user_disabled'],
    ['elsewhere', 403, 'permission_error', 'ip_not_allowed'],
  ])('the billing endpoints refuse the key %s', async (key, status, type, code) => {
    for (const what of ['subscription', 'usage'] as const) {
      const answer = await get(what, key)
      expect(answer.status).toBe(status)
      expect(answer.json()).toEqual({
        error: {
          type,
          code,
          message: expect.stringMatching(
            new RegExp(` \\(request id: ${String(answer.headers['x-request-id'])}\\)$`),
          ),
        },
      })
    }
  })

  test.each(['POST', 'DELETE'])('the billing endpoints refuse the method %s with 405', async (method) => {
    for (const path of ['/v1/dashboard/billing/usage', '/dashboard/billing/subscription']) {
      const answer = await call(fixture.gateway.url, undefined, { method, path, key: 'ann' })
      expect(answer.status).toBe(405)
      expect(answer.headers.allow).toBe('GET, HEAD')
    }
  })
})

test('the global rate limit counts requests for billing and usage together by address, and refuses with a gateway_error', async () => {
  await fixture.gateway.apply({
    ...configure({}),
    rate_limits: { global: { requests: 2, window: '60s' } },
  })
  expect((await get('usage', 'ann')).status).toBe(200)
  expect((await get('subscription', 'ann')).status).toBe(200)
  for (const path of [
    '/v1/dashboard/billing/usage',
    '/dashboard/billing/subscription',
    '/v1/dashboard/billing/subscription',
    '/api/usage/token/',
  ]) {
    const answer = await call(fixture.gateway.url, undefined, { method: 'GET', path, key: 'ann' })
    expect(answer.status, path).toBe(429)
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
    expect(answer.json().error).toMatchObject({ type: 'gateway_error', code: 'rate_limited' })
    expect(answer.json().error.message).toMatch(/\(request id: \S+\)$/)
  }
})
