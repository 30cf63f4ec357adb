import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { logIn, sessionHeaders } from '../fixtures/console.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BAN = { id: 3, accessToken: 'the-access-token-of-ban' }
const EVE = { id: 4, accessToken: 'the-access-token-of-eve' }
const FAY = { id: 5, accessToken: 'the-access-token-of-fay' }
const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const PASSWORD = 'correct horse'

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      options: { trusted_proxies: ['127.0.0.1'] },
      rate_limits: { global: { requests: 0 }, critical: { requests: 20, window: '20m' } },
      users: [
        ROOT,
        user(2, 'ann', [], { access_token: ANN.accessToken }),
        user(3, 'ban', [], { access_token: BAN.accessToken, status: 2 }),
        user(4, 'eve', [], { access_token: EVE.accessToken }),
        user(5, 'fay', [], { access_token: FAY.accessToken }),
      ],
    },
  })
})
afterAll(() => gateway?.discard())

let addresses = 0
/** Signs in by access token, each time from a new address. */
const enter = ({ accessToken }: { accessToken: string }, headers: Record<string, string> = {}) => {
  addresses += 1
  const from = { 'x-forwarded-for': `203.0.113.${addresses}`, ...headers }
  return logIn(gateway.url, { access_token: accessToken }, from)
}
const as = <Data = Record<string, unknown>>(
  cookie: string,
  request: Parameters<typeof manage>[2],
  body?: object,
) => manage<Data>(gateway.url, ANN, request, body, { ...sessionHeaders(cookie), 'gateway-user': undefined })

interface Session {
  readonly id: string
  readonly created_time: number
  readonly last_used: number
  readonly address: string
  readonly user_agent: string
  readonly current: boolean
}
const sessionsOf = async (cookie: string) => (await as<Session[]>(cookie, 'GET /api/user/self/sessions')).data

describe('a sign-in by access token', () => {
  test('a sign-in by access token returns the user and begins a session', async () => {
    const { status, data, setCookie, cookie } = await enter(ANN)
    expect([status, data]).toEqual([
      200,
      { id: 2, username: 'ann', display_name: 'ann', role: 1, status: 1, group: 'default' },
    ])
    expect(setCookie).toMatch(/^session=[\w-]{43}; /)
    expect(await as(cookie, 'GET /api/user/self')).toMatchObject({ status: 200, data: { id: 2 } })
    expect(gateway.logs()).not.toContain(ANN.accessToken)
  })

  test('a session that began by access token ends when the token is replaced; sessions by password do not', async () => {
    const { cookie: byToken } = await enter(EVE)
    await as(byToken, 'PUT /api/user/self', { password: PASSWORD })
    const { cookie: byPassword } = await logIn(gateway.url, { username: 'eve', password: PASSWORD })
    await manage(gateway.url, EVE, 'GET /api/user/token')
    expect((await as(byToken, 'GET /api/user/self')).status).toBe(401)
    expect((await as(byPassword, 'GET /api/user/self')).status).toBe(200)
    expect((await sessionsOf(byPassword)).map(({ current }) => current)).toEqual([true])
    expect((await enter(EVE)).status).toBe(401)
  })

  test("a sign-in by a banned user's access token is a 403, by an unknown one a 401, without a session", async () => {
    expect(await enter(BAN)).toMatchObject({
      status: 403,
      message: 'this user has been banned',
      setCookie: '',
    })
    expect(await enter({ accessToken: 'nobodys' })).toMatchObject({
      status: 401,
      message: 'invalid access token',
      setCookie: '',
    })
    expect((await enter({ accessToken: 'sk-ann' })).status).toBe(401)
  })

  test.each([
    [{ access_token: '' }, 'access_token: expected an access token'],
    [{ access_token: 7 }, 'access_token: expected an access token'],
    [{ access_token: 'x'.repeat(2_049) }, 'access_token: expected at most 2048 bytes'],
    [{ access_token: 'x', username: 'ann' }, 'username: expected none beside access_token'],
    [{ access_token: 'x', password: 'y' }, 'password: expected none beside access_token'],
  ])('a sign-in by access token with %j is a 400', async (body, sentence) => {
    const { status, message } = await logIn(gateway.url, body, { 'x-forwarded-for': '198.51.100.1' })
    expect([status, message]).toEqual([400, sentence])
  })

  test('a sign-in by access token counts against the rate limit of critical requests from its address', async () => {
    const from = { 'x-forwarded-for': '198.51.100.2' }
    for (let n = 0; n < 20; n += 1)
      expect((await enter({ accessToken: `guess-${n}` }, from)).status).toBe(401)
    expect((await enter(ANN, from)).status).toBe(429)
    expect((await enter(ANN)).status).toBe(200)
  })

  test('a sign-in by access token from a page of another site is refused', async () => {
    expect((await enter(ANN, { origin: 'https://evil.example' })).status).toBe(403)
  })
})

describe('a first password', () => {
  test('setting a first password needs no other password, keeps the session that set it, and ends all others', async () => {
    const [{ cookie: first }, { cookie: second }] = [await enter(FAY), await enter(FAY)]
    expect((await as(first, 'GET /api/user/self')).data).toMatchObject({ id: 5, has_password: false })
    const set = await as(first, 'PUT /api/user/self', { password: PASSWORD })
    expect(set).toMatchObject({ status: 200, data: { has_password: true } })
    expect((await as(first, 'GET /api/user/self')).status).toBe(200)
    expect((await as(second, 'GET /api/user/self')).status).toBe(401)
    expect((await enter(FAY)).status).toBe(200)
    expect((await logIn(gateway.url, { username: 'fay', password: PASSWORD })).status).toBe(200)
    // The next change needs it.
    expect((await as(first, 'PUT /api/user/self', { password: 'another horse' })).status).toBe(400)
  })
})

describe("an account's sessions", () => {
  test("an account's console sessions are listed with their last use, and the session of the request is marked as current", async () => {
    const { cookie: one } = await enter(ROOT_ACCOUNT, {
      'user-agent': 'browser one',
      'x-forwarded-for': '2001:db8::7',
    })
    const { cookie: two } = await enter(ROOT_ACCOUNT, { 'user-agent': 'x'.repeat(300) })
    const sessions = await sessionsOf(one)
    expect(sessions).toHaveLength(2)
    const mine = sessions.find(({ current }) => current)
    expect(mine).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{64}$/),
      created_time: expect.any(Number),
      last_used: mine?.created_time,
      address: '2001:db8::7',
      user_agent: 'browser one',
      current: true,
    })
    expect(sessions.find(({ current }) => !current)?.user_agent).toBe('x'.repeat(256))
    const byToken = await manage<Session[]>(gateway.url, ROOT_ACCOUNT, 'GET /api/user/self/sessions')
    expect(byToken.data.map(({ current }) => current)).toEqual([false, false])
    expect((await sessionsOf(two)).find(({ current }) => current)?.user_agent).toBe('x'.repeat(256))
  })

  test("an account's sessions can be ended one by one, only by their own user", async () => {
    const { cookie: one } = await enter(ROOT_ACCOUNT)
    const { cookie: two } = await enter(ROOT_ACCOUNT)
    const id = (await sessionsOf(two)).find(({ current }) => current)?.id
    const foreign = await enter(ANN)
    expect((await as(foreign.cookie, `DELETE /api/user/self/sessions/${id}`)).status).toBe(404)
    expect((await as(one, `DELETE /api/user/self/sessions/${id}`)).status).toBe(200)
    expect((await as(two, 'GET /api/user/self')).status).toBe(401)
    expect((await as(one, `DELETE /api/user/self/sessions/${id}`)).status).toBe(404)
    expect((await as(one, 'DELETE /api/user/self/sessions/x')).status).toBe(400)
  })

  test('the sessions of an account record the minute of their last use', async () => {
    const { cookie } = await enter(ROOT_ACCOUNT)
    await gateway.stop()
    databaseOf(gateway.dataDir).write('update sessions set last_used = 5, created_time = 5')
    await gateway.restart()
    await as(cookie, 'GET /api/user/self')
    const lastUsed = async () => (await sessionsOf(cookie)).find(({ current }) => current)?.last_used
    await vi.waitUntil(async () => ((await lastUsed()) ?? 0) > 5, { timeout: 60_000 })
    const sessions = databaseOf(gateway.dataDir).sessions()
    expect(sessions.filter(({ created_time }) => created_time === 5).length).toBeGreaterThan(0)
  })
})
