import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { logIn } from '../fixtures/console.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const WRONG = 'username or password is incorrect, or the user has been banned'
const PASSWORD = 'correct horse'

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      options: { trusted_proxies: ['127.0.0.1'] },
      rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
      users: [ROOT, user(2, 'ann', []), user(3, 'ban', []), user(4, 'seed', [])],
    },
  })
  for (const id of [2, 3]) {
    await manage(gateway.url, ROOT_ACCOUNT, 'PUT /api/user/', { id, password: PASSWORD })
  }
  await manage(gateway.url, ROOT_ACCOUNT, 'POST /api/user/manage', { id: 3, action: 'disable' })
})
afterAll(() => gateway.discard())

describe('POST /api/user/login', () => {
  test('POST /api/user/login returns the user, and gives the browser a session for 30 days', async () => {
    const { status, data, setCookie, headers } = await logIn(gateway.url, {
      username: 'ann',
      password: PASSWORD,
    })
    expect([status, data]).toEqual([
      200,
      { id: 2, username: 'ann', display_name: 'ann', role: 1, status: 1, group: 'default' },
    ])
    expect(setCookie).toMatch(/^session=[\w-]{43}; /)
    expect(setCookie.split('; ').slice(1).toSorted()).toEqual([
      'HttpOnly',
      'Max-Age=2592000',
      'Path=/',
      'SameSite=Strict',
    ])
    expect(headers['cache-control']).toContain('no-store')
    expect(gateway.logs()).not.toContain(PASSWORD)
  })

  test.each([
    ['https', true],
    ['HTTPS', true],
    ['https, http', true],
    ['http', false],
    ['', false],
  ])(
    'POST /api/user/login sets a secure cookie if X-Forwarded-Proto of a trusted proxy says https (%j: %s)',
    async (proto, secure) => {
      const { setCookie } = await logIn(
        gateway.url,
        { username: 'ann', password: PASSWORD },
        { 'x-forwarded-proto': proto },
      )
      expect(setCookie.includes('Secure')).toBe(secure)
    },
  )

  test('POST /api/user/login and logout set a secure cookie where public_url is https', async () => {
    const own = await startGateway({
      config: { options: { public_url: 'https://ai.example.com' }, users: [ROOT] },
    })
    try {
      const byToken = await logIn(own.url, { access_token: ROOT.access_token })
      const headers = { cookie: byToken.cookie }
      const out = await call(own.url, undefined, { method: 'GET', path: '/api/user/logout', headers })
      for (const cookie of [byToken.setCookie, String(out.headers['set-cookie'])])
        expect(cookie).toContain('Secure')
    } finally {
      await own.discard()
    }
  })

  test.each([
    ['a wrong password', { username: 'ann', password: 'wrong horse' }],
    ['a name that does not exist', { username: 'nobody', password: PASSWORD }],
    ['a name in other letters', { username: 'ANN', password: PASSWORD }],
    ['a user without a password', { username: 'seed', password: PASSWORD }],
    ['a user without a password, and none', { username: 'seed', password: '' }],
    ['a name out of a prototype', { username: '__proto__', password: PASSWORD }],
    ['a banned user with a wrong password', { username: 'ban', password: 'wrong horse' }],
  ])('a login with %s is a 401, with the same message', async (_, body) => {
    expect(await logIn(gateway.url, body)).toMatchObject({ status: 401, message: WRONG, setCookie: '' })
  })

  test('a login of a banned user with the right password is a 403 that says so', async () => {
    const answer = await logIn(gateway.url, { username: 'ban', password: PASSWORD })
    expect(answer).toMatchObject({ status: 403, message: 'this user has been banned', setCookie: '' })
  })

  test.each([
    [{}, 'username: expected the name of a user; password: expected a password'],
    [{ username: 5, password: PASSWORD }, 'username: expected the name of a user'],
    [{ username: 'ann' }, 'password: expected a password'],
    [{ username: 'ann', password: ['x'] }, 'password: expected a password'],
    [{ username: 'a\0', password: PASSWORD }, 'text may not contain the character NUL (U+0000)'],
    ['[]', 'expected an object with username and password'],
    ['{', 'the request body is not JSON'],
  ])('a login with %j is a 400', async (body, sentence) => {
    const { status, message } = await logIn(gateway.url, body)
    expect([status, message]).toEqual([400, expect.stringContaining(sentence)])
  })

  test('a page of another site cannot log anybody in', async () => {
    const body = { username: 'ann', password: PASSWORD }
    expect((await logIn(gateway.url, body, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect((await logIn(gateway.url, body, { origin: 'https://evil.example' })).status).toBe(403)
  })
})

describe('the number of login attempts', () => {
  const NAMES = ['ann', 'ben', 'cat', 'dan', 'fay']
  let limited: RunningGateway
  beforeAll(async () => {
    limited = await startGateway({
      config: {
        options: { trusted_proxies: ['127.0.0.1'] },
        rate_limits: { global: { requests: 0 }, critical: { requests: 3, window: '20m' } },
        users: [ROOT, ...NAMES.map((name, index) => user(2 + index, name, []))],
      },
    })
    for (const index of NAMES.keys()) {
      await manage(limited.url, ROOT_ACCOUNT, 'PUT /api/user/', { id: 2 + index, password: PASSWORD })
    }
  })
  afterAll(() => limited.discard())
  const enter = (username: string, from: string) =>
    logIn(limited.url, { username, password: PASSWORD }, { 'x-forwarded-for': from })
  const attempt = (username: string, from: string) =>
    logIn(limited.url, { username, password: 'a guess' }, { 'x-forwarded-for': from })

  test('login attempts are limited by address, whatever the name', async () => {
    for (const name of ['a', 'b', 'c']) expect((await attempt(name, '192.0.2.1')).status).toBe(401)
    const { status, headers } = await attempt('d', '192.0.2.1')
    expect(status).toBe(429)
    expect(Number(headers['retry-after'])).toBeGreaterThan(1100)
    expect((await attempt('d', '192.0.2.2')).status).toBe(401)
  })

  test('login attempts for a name from all addresses together are limited to ten times those from one, even for unknown names', async () => {
    for (const [row, name] of ['ben', 'nobody'].entries()) {
      const tries = Array.from({ length: 30 }, (_, n) => attempt(name, `198.51.${row}.${n}`))
      expect(new Set((await Promise.all(tries)).map(({ status }) => status))).toEqual(new Set([401]))
      const { status, message } = await attempt(name, '203.0.113.1')
      expect([status, message]).toEqual([429, expect.stringContaining('the rate limit of this name')])
    }
  })

  test('login attempts from one address never lock out a name at another address', async () => {
    for (let n = 0; n < 40; n += 1) await attempt('ann', '192.0.2.66')
    expect((await enter('ann', '203.0.113.70')).status).toBe(200)
  })

  test('login attempts from everywhere do not lock out a user who signed in before from the same address or network', async () => {
    for (const home of ['203.0.113.50', '2001:db8:5:6::1'])
      expect((await enter('cat', home)).status).toBe(200)
    await Promise.all(Array.from({ length: 40 }, (_, n) => attempt('cat', `198.18.0.${n}`)))
    expect((await enter('cat', '203.0.113.51')).status).toBe(429)
    expect((await enter('cat', '203.0.113.50')).status).toBe(200)
    expect((await enter('cat', '2001:db8:5:6:ffff::2')).status).toBe(200)
    expect((await enter('cat', '2001:db8:5:7::1')).status).toBe(429)
  })

  test('login attempts for other names do not lock out a user who signed in before from the same address', async () => {
    expect((await enter('dan', '203.0.113.80')).status).toBe(200)
    for (let n = 0; n < 5; n += 1) await attempt('eve', '203.0.113.80')
    expect((await attempt('eve', '203.0.113.80')).status).toBe(429)
    expect((await enter('dan', '203.0.113.80')).status).toBe(200)
  })

  test('login attempts for a name are limited even at an address where its owner signed in before', async () => {
    expect((await enter('fay', '203.0.113.90')).status).toBe(200)
    for (const _ of [1, 2, 3]) expect((await attempt('fay', '203.0.113.90')).status).toBe(401)
    expect((await enter('fay', '203.0.113.90')).status).toBe(429)
  })

  test('login attempts that are refused before the password check count by address, too', async () => {
    const options = { path: '/api/user/login', headers: { 'x-forwarded-for': '192.0.2.9' } }
    for (const _ of [1, 2, 3]) expect((await call(limited.url, '{', options)).status).toBe(400)
    expect((await call(limited.url, '{', options)).status).toBe(429)
  })
})
