import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { sessionHeaders, logIn } from '../fixtures/console.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const PASSWORD = 'correct horse'

let gateway: RunningGateway
let cookie: string
const root = (request: Parameters<typeof manage>[2], body?: object) =>
  manage(gateway.url, ROOT_ACCOUNT, request, body)
const self = (headers: Record<string, string | undefined> = {}) =>
  manage(gateway.url, ANN, 'GET /api/user/self', undefined, { ...sessionHeaders(cookie), ...headers })

beforeAll(async () => {
  gateway = await startGateway({
    config: {
      rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
      users: [ROOT, user(2, 'ann', [], { access_token: ANN.accessToken })],
    },
  })
})
afterAll(() => gateway.discard())
beforeEach(async () => {
  await root('PUT /api/user/', { id: 2, password: PASSWORD, keep_access_tokens: true })
  cookie = (await logIn(gateway.url, { username: 'ann', password: PASSWORD })).cookie
})

describe('a session', () => {
  test('a session cookie authenticates a management request without an access token', async () => {
    expect(await self()).toMatchObject({ status: 200, data: { id: 2, username: 'ann' } })
    expect(await self({ cookie: `theme=dark; ${cookie}; x=y` })).toMatchObject({ status: 200 })
  })

  test('a management request with a session cookie needs no Gateway-User header', async () => {
    expect(await self({ 'gateway-user': undefined })).toMatchObject({ status: 200, data: { id: 2 } })
  })

  test.each([
    ["another's id", { 'gateway-user': '1' }, 'does not match'],
    ['another session', { cookie: `session=${'x'.repeat(43)}` }, 'the session is over'],
    ['no session at all', { cookie: 'session=' }, 'not logged in'],
    ['an invalid session', { cookie: 'session=__proto__' }, 'not logged in'],
    ['an empty Authorization beside it', { authorization: '' }, 'not logged in'],
  ])(
    'a management request with a wrong session cookie, or a wrong user id beside it, is a 401: %s',
    async (_, headers, message) => {
      const answer = await self(headers)
      expect([answer.status, answer.message]).toEqual([401, expect.stringContaining(message)])
    },
  )

  test('a session cookie is ignored if a management request also sends Authorization', async () => {
    expect(await self({ authorization: 'nobodys' })).toMatchObject({
      status: 401,
      message: 'invalid access token',
    })
    const other = { authorization: ROOT.access_token, 'gateway-user': '1' }
    expect(await self(other)).toMatchObject({ status: 200, data: { id: 1 } })
    expect(await self({ authorization: ANN.accessToken, cookie: 'session=x' })).toMatchObject({ status: 200 })
  })

  test('a console session survives a restart, and the database has only the HMAC of its cookie', async () => {
    await gateway.restart()
    expect((await self()).status).toBe(200)
    const rows = databaseOf(gateway.dataDir).sessions()
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.every(({ id_hash: hash }) => /^[0-9a-f]{64}$/.test(hash))).toBe(true)
    expect(rows.every((row) => row.expires_time - row.created_time === 30 * 86_400)).toBe(true)
  })

  test('an expired console session is refused, and is deleted at the next log-in', async () => {
    const sessions = () => databaseOf(gateway.dataDir).sessions().length
    const before = sessions()
    await gateway.stop()
    databaseOf(gateway.dataDir).write('update sessions set expires_time = 1')
    await gateway.restart()
    expect(await self()).toMatchObject({ status: 401, message: 'the session is over: log in again' })
    expect(sessions()).toBe(before)
    await logIn(gateway.url, { username: 'ann', password: PASSWORD })
    expect(sessions()).toBe(1)
  })
})

describe('a session ends at once', () => {
  test.each(['GET', 'POST'])(
    '%s /api/user/logout ends its session at once, and no other session of the user',
    async (method) => {
      const { cookie: other } = await logIn(gateway.url, { username: 'ann', password: PASSWORD })
      const answer = await call(gateway.url, undefined, {
        method,
        path: '/api/user/logout',
        headers: { cookie },
      })
      expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { success: true, message: '' }])
      expect(answer.headers['set-cookie']).toEqual(['session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict'])
      expect((await self()).status).toBe(401)
      expect((await self({ cookie: other })).status).toBe(200)
      const again = await call(gateway.url, undefined, {
        method,
        path: '/api/user/logout',
        headers: { cookie },
      })
      expect(again.status).toBe(200)
    },
  )

  test('a session ends at once when the user is disabled, and does not return when the user is enabled', async () => {
    await root('POST /api/user/manage', { id: 2, action: 'disable' })
    expect(await self()).toMatchObject({ status: 403, message: 'this user has been banned' })
    await root('POST /api/user/manage', { id: 2, action: 'enable' })
    expect((await self()).status).toBe(401)
  })

  test('a session ends at once when an administrator sets a password', async () => {
    await root('PUT /api/user/', { id: 2, password: PASSWORD, keep_access_tokens: true })
    expect((await self()).status).toBe(401)
  })

  test('other sessions end at once when the user changes the password in a session', async () => {
    const change = await manage(
      gateway.url,
      ANN,
      'PUT /api/user/self',
      { password: 'another horse', original_password: PASSWORD, keep_access_tokens: true },
      sessionHeaders(cookie),
    )
    expect(change.status).toBe(200)
    expect((await self()).status).toBe(401)
    expect((await logIn(gateway.url, { username: 'ann', password: PASSWORD })).status).toBe(401)
    expect((await logIn(gateway.url, { username: 'ann', password: 'another horse' })).status).toBe(200)
  })

  test('a session ends at once when the user is deleted', async () => {
    const made = await root('POST /api/user/', { username: 'eve', password: PASSWORD })
    const { id } = made.data as { id: number }
    const { cookie: eves } = await logIn(gateway.url, { username: 'eve', password: PASSWORD })
    const asEve = { cookie: eves, 'gateway-user': String(id) }
    expect((await self(asEve)).status).toBe(200)
    await root(`DELETE /api/user/${id}`)
    expect((await self(asEve)).status).toBe(401)
    expect((await logIn(gateway.url, { username: 'eve', password: PASSWORD })).status).toBe(401)
  })
})

describe('a page of another site', () => {
  test.each([
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ 'sec-fetch-site': 'cross-site', origin: 'OURS' }, 403],
    [{ 'sec-fetch-site': 'same-origin' }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
    // A proxy may rewrite Host; sec-fetch-site is set by the browser.
    [{ 'sec-fetch-site': 'same-origin', origin: 'https://console.example' }, 200],
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'http://127.0.0.1' }, 403],
    [{ origin: 'OURS' }, 200],
    // X-Forwarded-Host is only trusted from trusted proxies, and this peer is not one.
    [{ origin: 'https://evil.example', 'x-forwarded-host': 'evil.example' }, 403],
  ])(
    'a session cookie is ignored in requests from pages of another site (%j: %i)',
    async (headers, status) => {
      const sent = Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, value === 'OURS' ? gateway.url : value]),
      )
      const answer = await self(sent)
      expect(answer.status).toBe(status)
      if (status === 403) expect(answer.body['code']).toBe('other_site')
    },
  )

  test('a page of another site cannot log anybody out', async () => {
    const headers = { cookie, 'sec-fetch-site': 'cross-site' }
    expect(
      (await call(gateway.url, undefined, { method: 'GET', path: '/api/user/logout', headers })).status,
    ).toBe(403)
    expect((await self()).status).toBe(200)
  })

  test('a page of another site cannot call GET /api/user/token, which changes the access token, with any credentials', async () => {
    const { data } = await root('POST /api/user/', { username: 'kim', password: PASSWORD })
    const { id } = data as { id: number }
    const asked = async (credentials: object, site?: string) => {
      const headers = { ...credentials, 'gateway-user': String(id), ...(site && { 'sec-fetch-site': site }) }
      const answer = await call(gateway.url, undefined, { method: 'GET', path: '/api/user/token', headers })
      return [answer.status, JSON.parse(answer.text)] as const
    }
    const kims = (await logIn(gateway.url, { username: 'kim', password: PASSWORD })).cookie
    const [, { data: token }] = await asked({ cookie: kims }, 'same-origin')
    for (const credentials of [{ cookie: kims }, { authorization: token }])
      for (const site of ['cross-site', 'same-site', 'Cross-Site', 'anything'])
        expect(await asked(credentials, site)).toMatchObject([403, { code: 'other_site' }])
    expect(await asked({ authorization: token })).toMatchObject([200, { success: true }])
    expect((await asked({ authorization: token }))[0]).toBe(401)
    for (const site of ['none', 'same-origin', undefined])
      expect((await asked({ cookie: kims }, site))[0]).toBe(200)
  })

  test('a management request with an access token is accepted from a page of any site, unlike one with a session cookie', async () => {
    const headers = { authorization: ANN.accessToken, cookie: undefined, origin: 'https://evil.example' }
    expect((await self(headers)).status).toBe(200)
  })
})
