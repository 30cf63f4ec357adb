import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { type FullResponse, call, send } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const PATH = '/api/usage/token/'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [
        token('ann', { remain_quota: 100_000, expired_time: 4_000_000_000 }),
        token('used', { remain_quota: 700 }),
        token('overshot', { remain_quota: 0 }),
        token('unlimited'),
        token('limits', { model_limits_enabled: true, model_limits: 'm, org/m,__proto__' }),
        token('nolimits', { model_limits_enabled: false, model_limits: 'm' }),
        token('expired', { remain_quota: 5, expired_time: 1_000_000_000 }),
        token('disabled', { status: 2 }),
        token('deleted'),
        token('elsewhere', { allow_ips: '192.0.2.1' }),
      ]),
      user(3, 'banned', [token('ofbanned')], { status: 2 }),
    ],
  }))
  const database = databaseOf(fixture.gateway.dataDir)
  database.write("update tokens set used_quota = 300 where name = 'token-used'")
  database.write("update tokens set used_quota = 120, remain_quota = -20 where name = 'token-overshot'")
  database.write("update tokens set used_quota = 77 where name = 'token-unlimited'")
  database.write("update tokens set deleted_time = 1700000000 where name = 'token-deleted'")
})
afterAll(() => fixture?.close())

const get = (
  key: string | undefined,
  headers: Record<string, string> = {},
  path = PATH,
): Promise<FullResponse> =>
  call(fixture.gateway.url, undefined, { method: 'GET', path, headers, ...(key !== undefined && { key }) })

async function usage(key: string): Promise<Record<string, unknown>> {
  const answer = await get(key)
  expect(answer.status, answer.text).toBe(200)
  const body = JSON.parse(answer.text)
  expect(Object.keys(body)).toEqual(['code', 'message', 'data'])
  expect(body).toMatchObject({ code: true, message: 'ok' })
  return body.data
}

describe('GET /api/usage/token/', () => {
  test('GET /api/usage/token returns the documented usage object of the key', async () => {
    const answer = await get('used')
    expect(answer.headers['content-type']).toBe('application/json')
    expect(answer.headers['cache-control']).toContain('no-store')
    expect(answer.headers['x-request-id']).toBeTypeOf('string')
    expect(await usage('used')).toEqual({
      object: 'token_usage',
      name: 'token-used',
      total_granted: 1000,
      total_used: 300,
      total_available: 700,
      held_quota: 0,
      unlimited_quota: false,
      model_limits_enabled: false,
      model_limits: {},
      expires_at: 0,
    })
  })

  test('GET /api/usage/token/ reports the balance of an overdrawn token as a negative number', async () => {
    expect(await usage('overshot')).toMatchObject({
      total_granted: 100,
      total_used: 120,
      total_available: -20,
    })
  })

  test('GET /api/usage/token/ reports 0 granted, used and available for an unlimited token', async () => {
    expect(await usage('unlimited')).toMatchObject({
      total_granted: 0,
      total_used: 0,
      total_available: 0,
      unlimited_quota: true,
    })
  })

  test('GET /api/usage/token/ names the models that the token is limited to', async () => {
    const { data } = JSON.parse((await get('limits')).text)
    expect(data.model_limits_enabled).toBe(true)
    expect(Object.entries(data.model_limits)).toEqual([
      ['m', true],
      ['org/m', true],
      ['__proto__', true],
    ])
    expect(await usage('nolimits')).toMatchObject({ model_limits_enabled: false, model_limits: {} })
  })

  test('GET /api/usage/token/ reports when the token expires', async () => {
    expect(await usage('ann')).toMatchObject({ expires_at: 4_000_000_000 })
  })

  test('GET /api/usage/token/ counts a charge as used as soon as the response is complete, and never counts a hold as used', async () => {
    fixture.upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    for (let calls = 1; calls <= 3; calls++) {
      await fixture.chat('ann', ask('m'))
      // One quota unit for a prompt token, four for an output token.
      expect(await usage('ann')).toMatchObject({
        total_granted: 100_000,
        total_used: 30 * calls,
        total_available: 100_000 - 30 * calls,
      })
    }
    fixture.upstream.script('m', { kind: 'silence' })
    const asking = send(fixture.gateway.url, ask('m', { max_tokens: 1000 }), { key: 'ann' })
    await fixture.upstream.receivedAtLeast('m', 1)
    expect(await usage('ann')).toMatchObject({ total_used: 90, total_available: 99_910 })
    asking.destroy()
  })
})

describe('who can read the usage', () => {
  test('GET /api/usage/token/ can be read with an expired and with an exhausted key', async () => {
    expect(await usage('expired')).toMatchObject({ total_available: 5, expires_at: 1_000_000_000 })
    expect(await usage('overshot')).toMatchObject({ total_available: -20 })
    // The same holds once the expiry is stored.
    expect(await usage('expired')).toMatchObject({ total_available: 5 })
    expect(await usage('overshot')).toMatchObject({ total_available: -20 })
    expect((await fixture.chat('expired', ask('m'))).status).toBe(401)
  })

  test.each([
    ['no key', undefined, 401, 'missing_api_key', 'authentication_error'],
    ['an unknown key', 'nobody', 401, 'invalid_api_key', 'authentication_error'],
    ['a disabled key', 'disabled', 401, 'token_disabled', 'authentication_error'],
    ['a deleted key', 'deleted', 401, 'token_deleted', 'authentication_error'],
    ['a key of a disabled user', 'ofbanned', 403, 'user_disabled', 'permission_error'],
    ['a key that is used from a foreign address', 'elsewhere', 403, 'ip_not_allowed', 'permission_error'],
  ])(
    'GET /api/usage/token/ is refused with the reason in both error formats: %s',
    async (_, key, status, code, type) => {
      const answer = await get(key)
      expect(answer.status, answer.text).toBe(status)
      const body = JSON.parse(answer.text)
      expect(body).toMatchObject({ code: false, data: {}, error: { code, type } })
      expect(body.message).toBe(body.error.message)
      expect(body.message).toMatch(new RegExp(`\\(request id: ${String(answer.headers['x-request-id'])}\\)$`))
    },
  )

  test.each([
    ['x-api-key', { 'x-api-key': 'sk-used' }, PATH],
    ['x-goog-api-key', { 'x-goog-api-key': 'sk-used' }, PATH],
    ['the query', {}, `${PATH}?key=sk-used`],
    ['an account', { authorization: 'root-access-token', 'gateway-user': '1' }, PATH],
  ])(
    'GET /api/usage/token/ is a 401 for credentials in another place than an API key in Authorization: %s',
    async (_, headers, path) => {
      expect((await get(undefined, headers, path)).status).toBe(401)
    },
  )
})

describe('the path of the usage', () => {
  test('GET /api/usage/token is redirected to the same path with a slash at its end', async () => {
    const answer = await get('used', {}, '/api/usage/token')
    expect(answer.status).toBe(301)
    expect(answer.headers.location).toBe(PATH)
    const query = await get('used', {}, '/api/usage/token?a=//evil.example/%0d%0a')
    expect(query.headers.location).toBe(`${PATH}?a=//evil.example/%0d%0a`)
    const followed = await fetch(`${fixture.gateway.url}/api/usage/token`, {
      headers: { authorization: 'Bearer sk-used' },
    })
    expect(await followed.json()).toMatchObject({ code: true, data: { total_used: 300 } })
  })

  test.each(['POST', 'PUT', 'DELETE'])('/api/usage/token/ refuses the method %s with 405', async (method) => {
    for (const path of [PATH, '/api/usage/token']) {
      const answer = await call(fixture.gateway.url, undefined, { method, path, key: 'used' })
      expect(answer.status).toBe(405)
      expect(answer.headers.allow).toBe('GET, HEAD')
    }
  })

  test.each(['/api/usage/token//', '/api/usage//token/', '/api/usage/token%2F', '/api/usage/token/1'])(
    'a path that resembles /api/usage/token/ is a 404: %s',
    async (path) => {
      expect((await get('used', {}, path)).status).toBe(404)
    },
  )
})
