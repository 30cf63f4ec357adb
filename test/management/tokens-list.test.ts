import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { NO_TERMS, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { createToken, type ShownPage, type ShownToken } from '../fixtures/tokens.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BOB = { id: 3, accessToken: 'the-access-token-of-bob' }
const MANY = { id: 4, accessToken: 'the-access-token-of-one-with-many' }
const NOBODY = { id: 5, accessToken: 'the-access-token-of-one-without-any' }
const MANY_COUNT = 105

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      rate_limits: {},
      groups: { default: { ratio: 1 }, vip: { ratio: 1 } },
      users: [
        ROOT,
        user(2, 'ann', [], { access_token: ANN.accessToken }),
        user(3, 'bob', [token('ofBob0123456789')], { access_token: BOB.accessToken }),
        user(
          4,
          'many',
          Array.from({ length: MANY_COUNT }, (_, index) => token(`many${index}`)),
          { access_token: MANY.accessToken },
        ),
        user(5, 'nobody', [], { access_token: NOBODY.accessToken }),
      ],
    },
  })
})
afterAll(() => gateway.discard())

const list = (account: Account, query = '') =>
  manage<ShownPage>(gateway.url, account, `GET /api/token/${query}`)
const get = (account: Account, id: number | string) =>
  manage<ShownToken>(gateway.url, account, `GET /api/token/${id}`)

describe('the credentials for the management of tokens', () => {
  const ENDPOINTS = [
    'GET /api/token/',
    'GET /api/token/search',
    'GET /api/token/1',
    'POST /api/token/1/key',
    'POST /api/token/',
    'POST /api/token/batch',
    'POST /api/token/batch/keys',
    'PUT /api/token/',
    'DELETE /api/token/1',
  ] as const

  describe.each(ENDPOINTS)('%s', (endpoint) => {
    test.each([
      ['nobody', { authorization: undefined }],
      ['an API key', { authorization: 'sk-ofBob0123456789' }],
      ['a client without Gateway-User', { 'gateway-user': undefined }],
      ["a client with another's id", { 'gateway-user': '2' }],
    ])('the management of tokens refuses %s with 401', async (_, headers) => {
      const answer = await manage(gateway.url, BOB, endpoint, {}, headers)
      expect(answer).toMatchObject({ status: 401, success: false })
      expect(answer.message).not.toBe('')
      expect(answer.body).not.toHaveProperty('data')
    })
  })

  test('the management of tokens accepts an access token with or without Bearer', async () => {
    const headers = { authorization: `Bearer ${BOB.accessToken}` }
    for (const path of ['GET /api/token/', 'GET /api/token/search'] as const)
      expect(await manage(gateway.url, BOB, path, undefined, headers)).toMatchObject({ status: 200 })
  })
})

describe('GET /api/token/', () => {
  test('GET /api/token/ is an empty page for a user without tokens', async () => {
    const { status, body } = await list(NOBODY)
    expect(status).toBe(200)
    expect(body).toEqual({
      success: true,
      message: '',
      data: { page: 1, page_size: 10, total: 0, items: [] },
    })
  })

  test("GET /api/token/ returns the client's own tokens, complete except for the key", async () => {
    const before = Math.floor(Date.now() / 1000)
    const {
      created_time: created,
      key,
      id,
      ...made
    } = await createToken(gateway.url, ANN, 'everything', {
      expired_time: 4_000_000_000,
      remain_quota: 77,
      model_limits_enabled: true,
      model_limits: 'a,b',
      allow_ips: '10.0.0.0/8\n192.0.2.7',
      group: 'vip',
      vendor_routes: '{"acme":"vip"}',
    })
    expect(made).toEqual({
      user_id: 2,
      name: 'everything',
      status: 1,
      accessed_time: 0,
      expired_time: 4_000_000_000,
      remain_quota: 77,
      unlimited_quota: false,
      used_quota: 0,
      model_limits_enabled: true,
      model_limits: 'a,b',
      allow_ips: '10.0.0.0/8\n192.0.2.7',
      group: 'vip',
      vendor_routes: '{"acme":"vip"}',
      guards: [],
      toolsets: [],
      content_log_what: '',
      content_log_sample: null,
      content_log_keep: null,
      ...NO_TERMS,
      left: 77,
      left_by: 'key',
      held_quota: 0,
      version: expect.any(String),
      DeletedAt: null,
    })
    expect(created).toBeGreaterThanOrEqual(before)
    expect(key).toMatch(/^sk-[0-9A-Za-z]\*{10}[0-9A-Za-z]{4}$/)
    expect((await get(ANN, id)).data).toMatchObject({ id, key, ...made })
  })

  test.each([
    ['', 1, 10, 104, 10],
    ['?p=2&page_size=20', 2, 20, 84, 20],
    ['?ps=7', 1, 7, 104, 7],
    ['?size=8', 1, 8, 104, 8],
    ['?page_size=5&ps=6&size=7', 1, 5, 104, 5],
    ['?page_size=100', 1, 100, 104, 100],
    ['?page_size=101', 1, 100, 104, 100],
    ['?page_size=9007199254740993', 1, 10, 104, 10],
    ['?p=2&page_size=100', 2, 100, 4, 5],
    ['?p=0&page_size=0', 1, 10, 104, 10],
    ['?p=-1&page_size=-1', 1, 10, 104, 10],
    ['?p=x&page_size=1e1', 1, 10, 104, 10],
    ['?p=99', 99, 10, undefined, 0],
    ['?p=999999999999&page_size=100', 999_999_999_999, 100, undefined, 0],
  ])(
    'GET /api/token/%s returns page %i with at most %i tokens, the newest first',
    async (query, page, pageSize, first, count) => {
      const { status, data } = await list(MANY, query)
      expect(status).toBe(200)
      expect(data).toMatchObject({ page, page_size: pageSize, total: MANY_COUNT })
      expect(data.items.map(({ name }) => name)).toEqual(
        Array.from({ length: count }, (_, index) => `token-many${(first ?? 0) - index}`),
      )
    },
  )

  test('GET /api/token/ shows the status expired or exhausted of a token that has no time or quota left, even before its first use', async () => {
    const old = await createToken(gateway.url, ANN, 'old', { expired_time: 1 })
    expect(old.status).toBe(3)
    const empty = await createToken(gateway.url, ANN, 'empty', { remain_quota: 0 })
    expect(empty.status).toBe(4)
    expect(databaseOf(gateway.dataDir).token('old').status).toBe(1)
  })
})

describe('GET /api/token/:id', () => {
  test("GET /api/token/:id of another user's token, and of an unknown one, is the same 404", async () => {
    const { data } = await list(BOB)
    const foreign = await get(ANN, data.items[0]?.id ?? 0)
    const missing = await get(ANN, 987_654_321)
    expect(foreign).toMatchObject({ status: 404, success: false })
    expect(foreign.message).not.toBe('')
    expect(missing.status).toBe(404)
    expect(missing.body).toEqual(foreign.body)
  })

  test.each(['0', '-1', '1e3', '1.5', '007', '9007199254740992', 'abc', '%31', '1%20', '__proto__'])(
    'GET /api/token/:id with the invalid id %s is a 400',
    async (id) => {
      expect(await get(ANN, id)).toMatchObject({ status: 400, success: false })
    },
  )

  test('GET /api/token/:id with the largest possible id is a 404', async () => {
    expect(await get(ANN, '9007199254740991')).toMatchObject({ status: 404 })
  })
})
