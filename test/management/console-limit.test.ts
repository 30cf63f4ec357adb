import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { logIn, sessionHeaders } from '../fixtures/console.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BEN = { id: 3, accessToken: 'the-access-token-of-ben' }

let gateway: RunningGateway
let ann: string
let ben: string
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      options: { trusted_proxies: ['127.0.0.1'] },
      rate_limits: {
        global: { requests: 3, window: '1h' },
        search: { requests: 1, window: '1h' },
        critical: { requests: 2, window: '1h' },
        console: { requests: 8, window: '1h' },
      },
      users: [
        ROOT,
        user(2, 'ann', [], { access_token: ANN.accessToken }),
        user(3, 'ben', [], { access_token: BEN.accessToken }),
      ],
    },
  })
  const enter = async ({ accessToken }: typeof ANN, from: string) =>
    (await logIn(gateway.url, { access_token: accessToken }, { 'x-forwarded-for': from })).cookie
  ann = await enter(ANN, '192.0.2.1')
  ben = await enter(BEN, '192.0.2.2')
})
afterAll(() => gateway?.discard())

const by = (cookie: string, request: Parameters<typeof manage>[2], from: string, body?: object) =>
  manage(gateway.url, ANN, request, body, {
    ...sessionHeaders(cookie),
    'gateway-user': undefined,
    'x-forwarded-for': from,
  })

describe('requests by a session', () => {
  test('requests of a console session count on a limit per user, not on the limits of the address and of searches', async () => {
    const office = '198.51.100.1'
    for (let n = 8; n > 0; n -= 1) {
      const path = n % 2 === 0 ? 'GET /api/token/search?keyword=x' : 'GET /api/user/self'
      const { status, headers } = await by(ann, path, office)
      expect([status, headers['ratelimit-limit'], headers['ratelimit-remaining']]).toEqual([
        200,
        '8',
        `${n - 1}`,
      ])
    }
    const over = await by(ann, 'GET /api/user/self', office)
    expect(over).toMatchObject({ status: 429, message: expect.stringContaining('this user in the console') })
    // The same user at another address has the same limit; another user at the same address has a separate
    // limit.
    expect((await by(ann, 'GET /api/user/self', '198.51.100.2')).status).toBe(429)
    expect((await by(ben, 'GET /api/user/self', office)).status).toBe(200)
  })

  test("password changes from a console session count on the limit for critical requests, like any other client's", async () => {
    const wrong = { password: 'another horse', original_password: 'a guess' }
    await manage(gateway.url, { id: 1, accessToken: ROOT.access_token }, 'PUT /api/user/', {
      id: 3,
      password: 'correct horse',
      keep_access_tokens: true,
    })
    const { cookie } = await logIn(
      gateway.url,
      { access_token: BEN.accessToken },
      { 'x-forwarded-for': '192.0.2.3' },
    )
    const statuses = []
    for (let n = 0; n < 3; n += 1)
      statuses.push((await by(cookie, 'PUT /api/user/self', '192.0.2.3', wrong)).status)
    expect(statuses).toEqual([400, 400, 429])
  })

  test.each([
    ['an invalid session', { cookie: `session=${'x'.repeat(43)}` }, '198.51.100.11'],
    ['a session of another site', { cookie: 'ANN', origin: 'https://evil.example' }, '198.51.100.12'],
    ['a session beside an access token', { cookie: 'ANN', authorization: 'nobodys' }, '198.51.100.13'],
    ['an access token', { authorization: ANN.accessToken, 'gateway-user': '2' }, '198.51.100.14'],
  ])(
    'a management request with %s counts against the rate limit of its address, not that of a user',
    async (_, headers, from) => {
      const sent = Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, value === 'ANN' ? ann : value]),
      )
      const ask = () =>
        call(gateway.url, undefined, {
          method: 'GET',
          path: '/api/user/self',
          headers: { ...sent, 'x-forwarded-for': from },
        })
      const answers = [await ask(), await ask(), await ask(), await ask()]
      expect(answers.map(({ status }) => status === 429)).toEqual([false, false, false, true])
      expect(answers[3]?.text).toContain('this address')
    },
  )
})
