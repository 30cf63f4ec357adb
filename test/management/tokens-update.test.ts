import process from 'node:process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { keyOf, createToken, type ShownToken, tokenBody } from '../fixtures/tokens.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BOB = { id: 3, accessToken: 'the-access-token-of-bob' }
const CAL = { id: 4, accessToken: 'the-access-token-of-cal' }
const MAX_QUOTA = 500_000_000_000_000

let fixture: Fixture
let database: GatewayDatabase
/** The configuration with this status of the token `loose`, if any. */
let configured: (status?: number) => Configuration
beforeAll(async () => {
  fixture = await startFixture((upstream) => {
    upstream.script('m', { kind: 'whole' })
    configured = (status) => ({
      rate_limits: {},
      groups: { default: { ratio: 1 }, open: { ratio: 1 }, vip: { ratio: 1, open: false } },
      models: priced(['m', 'n']),
      channels: [channel('m', upstream.baseUrl('m'), { models: ['m', 'n'] })],
      users: [
        ROOT,
        user(
          2,
          'ann',
          [
            token('fixed', { status: 1 }),
            token('off', { status: 2 }),
            token('loose', status === undefined ? {} : { status }),
          ],
          { access_token: ANN.accessToken },
        ),
        user(3, 'bob', [token('ofbob')], { access_token: BOB.accessToken }),
        user(4, 'cal', [token('ofcal'), token('gone')], { access_token: CAL.accessToken }),
      ],
    })
    return configured()
  })
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

type Fields = Record<string, unknown>

const made = (name: string, fields: Fields = {}) =>
  createToken(fixture.gateway.url, ANN, name, { remain_quota: 1_000_000, ...fields })
const put = (body: unknown, query = '', account: Account = ANN) =>
  manage<ShownToken>(fixture.gateway.url, account, `PUT /api/token/${query}`, body as object)
const setStatus = (id: number, status: unknown, more: Fields = {}) =>
  put({ id, status, ...more }, '?status_only=1')
const get = async (id: number) =>
  (await manage<ShownToken>(fixture.gateway.url, ANN, `GET /api/token/${id}`)).data
const keyed = async (name: string, fields: Fields = {}) => {
  const { id } = await made(name, fields)
  return { id, key: await keyOf(fixture.gateway.url, ANN, id) }
}
async function called(key: string, model = 'm'): Promise<[number, unknown]> {
  const answer = await fixture.chat(key, ask(model))
  return [answer.status, answer.status === 200 ? undefined : answer.json().error.code]
}

/** The version changes with every change. */
const ANY: unknown = expect.any(String)

const CHANGES: Fields[] = [
  { name: 'renamed' },
  { expired_time: 4_000_000_000 },
  { expired_time: -1 },
  { remain_quota: 5 },
  { remain_quota: MAX_QUOTA },
  { unlimited_quota: true },
  { model_limits_enabled: true },
  { model_limits: 'n' },
  { allow_ips: '127.0.0.1' },
  { group: 'open' },
  { vendor_routes: '{"acme":"open"}' },
]

describe('PUT /api/token/', () => {
  test.each(CHANGES)(
    'PUT /api/token/ writes %j and keeps the other fields, and returns the token, its key masked',
    async (fields) => {
      const before = await made('plain')
      const { status, body } = await put({ id: before.id, ...fields })
      expect(status).toBe(200)
      const changed = { ...before, ...fields, version: ANY, left: expect.any(Number), left_by: ANY }
      expect(body).toEqual({ success: true, message: '', data: changed })
      expect(before.key).toContain('**********')
      expect(await get(before.id)).toEqual(changed)
    },
  )

  test('PUT /api/token/ writes all fields at once', async () => {
    const before = await made('all')
    const fields = Object.assign({}, ...CHANGES) as Fields
    const changed = { ...before, ...fields, version: ANY, left: expect.any(Number), left_by: ANY }
    expect((await put({ id: before.id, ...fields })).data).toEqual(changed)
  })

  test('PUT /api/token/ accepts a token in the form in which GET returned it', async () => {
    const before = await made('round trip', { allow_ips: '127.0.0.1', group: 'open' })
    expect((await put({ ...before })).data).toEqual(before)
  })

  test('PUT /api/token/ ignores read-only fields, including a status', async () => {
    const before = await made('modest')
    const ignored = {
      user_id: 3,
      user: 'bob',
      key: 'sk-mine',
      status: 2,
      created_time: 1,
      accessed_time: 1,
      used_quota: 1,
      DeletedAt: '2020-01-01T00:00:00Z',
    }
    expect((await put({ id: before.id, ...ignored, name: 'proud' })).data).toEqual({
      ...before,
      name: 'proud',
      version: ANY,
    })
    expect((await put({ id: before.id, status: 'no status at all' })).status).toBe(200)
  })

  test('PUT /api/token/ treats null like a missing field, except in allow_ips, where null removes the list', async () => {
    const before = await made('nulls', {
      group: 'open',
      model_limits: 'm',
      allow_ips: '127.0.0.1',
      vendor_routes: '{"acme":"open"}',
    })
    const nulls = {
      name: null,
      expired_time: null,
      remain_quota: null,
      unlimited_quota: null,
      model_limits_enabled: null,
      model_limits: null,
      group: null,
      vendor_routes: null,
    }
    expect((await put({ id: before.id, ...nulls })).data).toEqual(before)
    expect((await put({ id: before.id, allow_ips: null })).data).toEqual({
      ...before,
      allow_ips: null,
      version: ANY,
    })
    expect((await put({ id: before.id, group: '', vendor_routes: '', model_limits: '' })).data).toMatchObject(
      {
        group: '',
        vendor_routes: '',
        model_limits: '',
      },
    )
  })

  test("PUT /api/token/ of another user's token, and of an unknown one, is the same 404, and writes nothing", async () => {
    const { id } = database.token('token-ofbob')
    const missing = await put({ id: 987_654_321, name: 'x' })
    for (const answer of [await put({ id, name: 'x' }), await setStatus(id, 2)]) {
      expect(answer).toMatchObject({ status: 404, success: false })
      expect(answer.body).toEqual(missing.body)
    }
    expect(database.token('token-ofbob')).toMatchObject({ id, status: 1 })
  })

  test.each<[string, Fields, string]>([
    ['an empty name', { name: '' }, 'name'],
    ['a name of 51 emoji', { name: '👩‍👩‍👧‍👦'.repeat(51) }, 'name'],
    ['expired_time 0', { expired_time: 0 }, 'expired_time'],
    ['expired_time -2', { expired_time: -2 }, 'expired_time'],
    ['expired_time in milliseconds', { expired_time: 1_796_069_363_000 }, 'expired_time'],
    ['a quota below zero', { remain_quota: -1 }, 'remain_quota'],
    ['half a quota', { remain_quota: 1.5 }, 'remain_quota'],
    ['a quota as text', { remain_quota: '5' }, 'remain_quota'],
    ['a quota above the bound', { remain_quota: MAX_QUOTA + 1 }, 'remain_quota'],
    ['2^53 without limit', { unlimited_quota: true, remain_quota: 2 ** 53 }, 'remain_quota'],
    ['garbage addresses', { allow_ips: 'nonsense' }, 'allow_ips'],
    ['an unknown group', { group: 'nowhere' }, 'group'],
    ['a closed group', { group: 'vip' }, 'group'],
    ['nested routes', { vendor_routes: '{"acme":{}}' }, 'vendor_routes'],
    ['routes to nothing', { vendor_routes: '{"acme":""}' }, 'vendor_routes'],
    ['routes that are not JSON', { vendor_routes: 'acme' }, 'vendor_routes'],
    ['routes to a closed group', { vendor_routes: '{"acme":"vip"}' }, 'vendor_routes'],
  ])(
    'PUT /api/token/ with %s is a 400 that names the field, and writes nothing',
    async (_, fields, named) => {
      const before = await made('steady')
      const answer = await put({ id: before.id, model_limits: 'm', ...fields })
      expect(answer).toMatchObject({ status: 400, success: false })
      expect(answer.message).toMatch(new RegExp(`^${named}: `))
      expect(await get(before.id)).toEqual(before)
    },
  )

  test.each([
    ['no id', {}],
    ['null', { id: null }],
    ['0', { id: 0 }],
    ['-1', { id: -1 }],
    ['half an id', { id: 1.5 }],
    ['2^53', { id: 2 ** 53 }],
    ['1e3 as text', { id: '1e3' }],
    ['a list', []],
    ['malformed JSON', '{"id":1,'],
    ['no body', undefined],
  ])('PUT /api/token/ with %s is a 400, with and without status_only=1', async (_, body) => {
    expect(await put(body)).toMatchObject({ status: 400, success: false })
    const status = typeof body === 'object' && !Array.isArray(body) ? { ...body, status: 2 } : body
    expect(await put(status, '?status_only=1')).toMatchObject({ status: 400, success: false })
  })

  test('PUT /api/token/ accepts any quota for an unlimited token, and checks the quota when the token is limited again', async () => {
    const { id } = await made('boundless', { unlimited_quota: true })
    expect((await put({ id, remain_quota: MAX_QUOTA + 1 })).data.remain_quota).toBe(MAX_QUOTA + 1)
    expect((await put({ id, unlimited_quota: false })).status).toBe(400)
    expect((await put({ id, remain_quota: -5 })).data).toMatchObject({ remain_quota: -5, status: 1 })
    expect((await put({ id, unlimited_quota: false, remain_quota: -5 })).status).toBe(400)
    // A quota that was exceeded is accepted: nothing remains.
    expect((await put({ id, unlimited_quota: false })).data).toMatchObject({ remain_quota: -5, status: 4 })
  })
})

describe('status_only=1', () => {
  test('PUT /api/token/ with status_only=1 only changes the status, which applies to the very next call', async () => {
    const { id, key } = await keyed('switched')
    expect(await called(key)).toEqual([200, undefined])
    const before = await get(id)
    const off = await setStatus(id, 2, { name: 'x'.repeat(99), remain_quota: -1, group: 5 })
    expect([off.status, off.data]).toEqual([200, { ...before, status: 2, version: ANY }])
    expect(await called(key)).toEqual([401, 'token_disabled'])
    const on = await setStatus(id, 1)
    expect([on.status, on.data]).toEqual([200, before])
    expect(await called(key)).toEqual([200, undefined])
  })

  test.each([0, 3, 4, 7, -1, 1.5, '1', true, null, undefined])(
    'PUT /api/token/ with status_only=1 and the status %j is a 400',
    async (status) => {
      const { id } = await made('stubborn')
      const answer = await setStatus(id, status)
      expect(answer).toMatchObject({ status: 400, success: false })
      expect(answer.message).toMatch(/^status: /)
      expect((await get(id)).status).toBe(1)
    },
  )

  test('PUT /api/token/ with status_only=true, as tools for new-api send it, disables the key', async () => {
    const { id, key } = await keyed('leaked')
    expect((await put({ id, status: 2, name: 'not this' }, '?status_only=true')).data).toMatchObject({
      status: 2,
      name: 'leaked',
    })
    expect(await called(key)).toEqual([401, 'token_disabled'])
  })

  test.each(['yes', 'TRUE', '2'])(
    'PUT /api/token/?status_only=%s is a 400, and changes nothing',
    async (value) => {
      const { id } = await made('not clear')
      const answer = await put({ id, status: 2, name: 'neither' }, `?status_only=${value}`)
      expect(answer).toMatchObject({ status: 400, success: false })
      expect(answer.message).toMatch(/^status_only: /)
      expect(await get(id)).toMatchObject({ status: 1, name: 'not clear' })
    },
  )

  test.each(['?status_only=0', '?status_only=false', '?status_only='])(
    'PUT /api/token/%s ignores the status and changes the other fields, unlike status_only=1',
    async (query) => {
      const { id } = await made('not it')
      expect((await put({ id, status: 2, name: 'now this' }, query)).data).toMatchObject({
        status: 1,
        name: 'now this',
      })
    },
  )
})

describe('a token that expired', () => {
  test.each([
    ['and was used', true],
    ['and was not used', false],
  ])(
    'a token that expired %s cannot be enabled, and works again at once with a later expiry',
    async (name, isUsed) => {
      const { id, key } = await keyed(name, { expired_time: 1_700_000_000 })
      if (isUsed) {
        expect(await called(key)).toEqual([401, 'token_expired'])
        await expect.poll(() => database.token(name).status).toBe(3)
      }
      const refused = await setStatus(id, 1)
      expect(refused).toMatchObject({ status: 400, success: false })
      expect(refused.message).toContain('expired_time')
      expect((await put({ id, name: `${name}, renamed` })).data.status).toBe(3)
      expect((await put({ id, expired_time: 4_000_000_000 })).data.status).toBe(1)
      expect(await called(key)).toEqual([200, undefined])
      expect((await setStatus(id, 1)).data.status).toBe(1)
    },
  )
})

describe('a token whose quota is used up', () => {
  test.each<[string, Fields]>([
    ['is given some', { remain_quota: 1_000_000 }],
    ['has no limit any more', { unlimited_quota: true }],
  ])(
    'a token whose quota is used up cannot be enabled, and works again at once when it %s',
    async (name, cure) => {
      const { id, key } = await keyed(name, { remain_quota: 0 })
      expect(await called(key)).toEqual([401, 'token_exhausted'])
      await expect.poll(() => database.token(name).status).toBe(4)
      const refused = await setStatus(id, 1)
      expect(refused).toMatchObject({ status: 400, success: false })
      expect(refused.message).toContain('remain_quota')
      expect((await put({ id, ...cure })).data.status).toBe(1)
      expect(await called(key)).toEqual([200, undefined])
      expect((await setStatus(id, 1)).data.status).toBe(1)
    },
  )

  test('a disabled token whose quota is used up stays disabled when it gets a new quota', async () => {
    const { id, key } = await keyed('off and empty', { remain_quota: 0 })
    await setStatus(id, 2)
    expect((await put({ id, remain_quota: 1_000_000 })).data.status).toBe(2)
    expect(await called(key)).toEqual([401, 'token_disabled'])
  })

  test('a disabled token whose quota is used up has the status exhausted once it is enabled', async () => {
    const { id } = await keyed('off, then on', { remain_quota: 0 })
    await setStatus(id, 2)
    expect(await setStatus(id, 1)).toMatchObject({ status: 200, data: { status: 4 } })
  })
})

describe('changes at the very next call', () => {
  test.each<[string, Fields, [number, unknown]]>([
    ['the time', { expired_time: 1 }, [401, 'token_expired']],
    ['the quota', { remain_quota: 0 }, [401, 'token_exhausted']],
    ['too small a quota', { remain_quota: 3 }, [403, 'insufficient_quota']],
    ['the models', { model_limits_enabled: true, model_limits: 'n' }, [403, 'model_not_allowed']],
    ['the addresses', { allow_ips: '10.0.0.0/8' }, [403, 'ip_not_allowed']],
    ['the group', { group: 'open' }, [503, 'model_not_found']],
    ['the routes', { vendor_routes: '{"acme":"open"}' }, [503, 'model_not_found']],
  ])('a change of a token applies to the very next call: %s', async (name, fields, outcome) => {
    const { id, key } = await keyed(name)
    expect(await called(key)).toEqual([200, undefined])
    expect((await put({ id, ...fields })).status).toBe(200)
    expect(await called(key)).toEqual(outcome)
  })

  test('a change of unlimited_quota applies to the very next call', async () => {
    const { id, key } = await keyed('limits', { remain_quota: 3 })
    expect(await called(key)).toEqual([403, 'insufficient_quota'])
    await put({ id, unlimited_quota: true })
    expect(await called(key)).toEqual([200, undefined])
    await put({ id, unlimited_quota: false, remain_quota: 3 })
    expect(await called(key)).toEqual([403, 'insufficient_quota'])
  })
})

test('a token of gateway.yaml that its user renames is not created a second time at the next start', async () => {
  const { id } = database.token('token-loose')
  expect((await put({ id, name: 'my own name' })).status).toBe(200)
  await fixture.gateway.restart()
  expect(database.tokens().filter(({ user_id: userId }) => userId === ANN.id)).not.toContainEqual(
    expect.objectContaining({ name: 'token-loose' }),
  )
  expect(await called('loose')).toEqual([200, undefined])
})

test('a token status that gateway.yaml declares can be changed over HTTP, and is restored at the next reload', async () => {
  const { id } = database.token('my own name')
  await fixture.gateway.apply(configured(2))
  await expect.poll(() => called('loose')).toEqual([401, 'token_disabled'])
  expect((await setStatus(id, 1)).status).toBe(200)
  expect(await called('loose')).toEqual([200, undefined])
  process.kill(fixture.gateway.pid, 'SIGHUP')
  await expect.poll(() => called('loose')).toEqual([401, 'token_disabled'])
})

test('an account that is no administrator makes 1,000 changes in 24 hours; it can still disable and delete keys, and administrators change them', async () => {
  const { id } = database.token('token-ofcal')
  const send = (request: Parameters<typeof manage>[2], body?: object, account: Account = CAL) =>
    manage(fixture.gateway.url, account, request, body)
  const change = { id, name: 'token-ofcal' }
  for (const refused of [{ id: 987_654_321, name: 'x' }, { id, name: '' }, 7])
    expect((await send('PUT /api/token/', refused as object)).status).toBeOneOf([400, 404])
  for (let done = 0; done < 1000; done += 20)
    for (const { status } of await Promise.all(
      Array.from({ length: 20 }, () => send('PUT /api/token/', change)),
    ))
      expect(status).toBe(200)
  const made = tokenBody('one more')
  for (const refused of [
    await send('PUT /api/token/', change),
    await send('POST /api/token/', made),
    await send('DELETE /api/cache'),
    await send('DELETE /api/content'),
  ]) {
    expect(refused).toMatchObject({ status: 429, body: { success: false, code: 'rate_limited' } })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(86_400)
  }
  const status = (to: number) => send('PUT /api/token/?status_only=1', { id, status: to })
  expect((await status(2)).status).toBe(200)
  expect((await status(1)).status).toBe(429)
  expect((await send(`DELETE /api/token/${database.token('token-gone').id}`)).status).toBe(200)
  expect((await put({ id: database.token('token-ofbob').id, name: 'token-ofbob' }, '', BOB)).status).toBe(200)
  const root = { id: 1, accessToken: ROOT.access_token }
  expect((await send('PUT /api/user/4/tokens', change, root)).status).toBe(200)
  expect((await send('POST /api/token/', made, root)).status).toBe(200)
})
