import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import type { Body } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { keyOf, createToken, type ShownPage, tokenBody } from '../fixtures/tokens.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const VIP = { id: 3, accessToken: 'the-access-token-of-a-vip' }
const NEAR = { id: 4, accessToken: 'the-access-token-of-one-near-the-limit' }
const MAX_TOKENS = 60
/** 1,000,000,000 times the 5,000 quota units that are one unit of currency here. */
const MAX_QUOTA = 5_000_000_000_000

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { critical: { requests: 9, window: '1h' } },
    options: { max_user_tokens: MAX_TOKENS, quota_per_unit: 5000 },
    groups: { default: { ratio: 1 }, open: { ratio: 1 }, vip: { ratio: 1, open: false } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [], { access_token: ANN.accessToken }),
      user(5, 'cam', [], { access_token: 'the-access-token-of-cam' }),
      user(3, 'vera', [], { access_token: VIP.accessToken, group: 'vip' }),
      user(
        4,
        'near',
        Array.from({ length: MAX_TOKENS - 1 }, (_, index) => token(`near${index}`)),
        { access_token: NEAR.accessToken },
      ),
    ],
  }))
})
afterAll(() => fixture?.close())

const create = (account: Account, body: Body) =>
  manage(fixture.gateway.url, account, 'POST /api/token/', body)
const made = (name: string, fields: Record<string, unknown> = {}) =>
  createToken(fixture.gateway.url, ANN, name, fields)
const count = async (account: Account) =>
  (await manage<ShownPage>(fixture.gateway.url, account, 'GET /api/token/')).data.total

describe('POST /api/token/', () => {
  test('POST /api/token/ returns success without the new key or other data', async () => {
    const { status, body } = await create(ANN, tokenBody('first'))
    expect(status).toBe(200)
    expect(body).toEqual({ success: true, message: '' })
  })

  test('POST /api/token/ with reveal=1 returns the id and the key of the new token', async () => {
    const request = 'POST /api/token/?reveal=1'
    const { status, headers, data } = await manage<{ id: number; key: string }>(
      fixture.gateway.url,
      ANN,
      request,
      tokenBody('shown', { unlimited_quota: true }),
    )
    expect(status).toBe(200)
    expect(headers['cache-control']).toContain('no-store')
    expect(Object.keys(data)).toEqual(['id', 'key'])
    expect(data.key).toBe(`sk-${await keyOf(fixture.gateway.url, ANN, data.id)}`)
    fixture.upstream.script('m', { kind: 'whole' })
    expect((await fixture.chat(data.key.slice('sk-'.length), ask('m'))).status).toBe(200)
    const unasked = await manage(fixture.gateway.url, ANN, 'POST /api/token/?reveal=0', tokenBody('unshown'))
    expect(unasked.body).toEqual({ success: true, message: '' })
  })

  test('POST /api/token/ counts against the limit of critical requests only if it reveals the key', async () => {
    const account = { id: 5, accessToken: 'the-access-token-of-cam' }
    const statuses = []
    for (let n = 0; n < 10; n += 1)
      statuses.push(
        (await manage(fixture.gateway.url, account, 'POST /api/token/?reveal=1', tokenBody(`r${n}`))).status,
      )
    expect(statuses).toEqual([...Array.from({ length: 9 }, () => 200), 429])
    expect((await create(account, tokenBody('more'))).status).toBe(200)
    expect(await count(account)).toBe(10)
  })

  test('POST /api/token/ creates a key that works at once', async () => {
    const { id } = await made('works', { unlimited_quota: true })
    fixture.upstream.script('m', { kind: 'whole' })
    const key = await keyOf(fixture.gateway.url, ANN, id)
    expect(key).toMatch(/^[0-9A-Za-z]{48}$/)
    expect((await fixture.chat(key, ask('m'))).status).toBe(200)
  })

  test('POST /api/token/ ignores read-only fields', async () => {
    const token = await made('modest', {
      id: 7777,
      user_id: 3,
      user: 'vera',
      key: 'sk-mine',
      status: 2,
      created_time: 5,
      accessed_time: 5,
      used_quota: 5,
      DeletedAt: '2020-01-01T00:00:00Z',
    })
    expect(token).toMatchObject({ user_id: 2, status: 1, accessed_time: 0, used_quota: 0, DeletedAt: null })
    expect(token.id).not.toBe(7777)
    expect(token.created_time).toBeGreaterThan(1_700_000_000)
    expect(await keyOf(fixture.gateway.url, ANN, token.id)).not.toBe('mine')
    expect(await count(VIP)).toBe(0)
  })

  test('POST /api/token/ treats null in an optional field as absence', async () => {
    const token = await made('nulls', {
      unlimited_quota: null,
      model_limits_enabled: null,
      model_limits: null,
      allow_ips: null,
      group: null,
      vendor_routes: null,
    })
    expect(token).toMatchObject({
      unlimited_quota: false,
      model_limits_enabled: false,
      model_limits: '',
      allow_ips: null,
      group: '',
      vendor_routes: '',
    })
  })

  test.each([
    ['50 letters', 'x'.repeat(50)],
    ['50 emoji', '👩‍👩‍👧‍👦'.repeat(50)],
    ['a name of the language', '__proto__'],
    ['SQL', "'); DROP TABLE tokens; --"],
  ])('POST /api/token/ accepts a name of %s', async (_, name) => {
    expect((await made(name)).name).toBe(name)
  })

  test.each([
    ['a quota of 0', { remain_quota: 0 }],
    ['the largest quota', { remain_quota: MAX_QUOTA }],
    ['any quota of a token without limit', { unlimited_quota: true, remain_quota: MAX_QUOTA + 1 }],
    ['one below zero', { unlimited_quota: true, remain_quota: -1 }],
    ['the largest number', { unlimited_quota: true, remain_quota: Number.MAX_SAFE_INTEGER }],
    ['a time in the past', { expired_time: 1 }],
    ['an open group', { group: 'open' }],
    ['an empty group', { group: '' }],
    ['routes to open groups', { vendor_routes: '{"acme":"open","__proto__":"default"}' }],
    ['empty routes', { vendor_routes: '' }],
    ['a blank list of addresses', { allow_ips: '' }],
    ['addresses of both kinds', { allow_ips: '10.0.0.0/8\n2001:db8::/32\n192.0.2.1' }],
  ])('POST /api/token/ accepts %s', async (what, fields) => {
    const token = await made(what, fields)
    expect(token).toMatchObject('allow_ips' in fields && fields.allow_ips === '' ? {} : fields)
  })

  test("POST /api/token/ accepts a group that is not open to all users if it is the user's own group", async () => {
    expect(await create(VIP, tokenBody('own', { group: 'vip' }))).toMatchObject({ status: 200 })
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['no name', { name: undefined }, 'name'],
    ['an empty name', { name: '' }, 'name'],
    ['a name that is null', { name: null }, 'name'],
    ['a name that is a number', { name: 5 }, 'name'],
    ['a name of 51 letters', { name: 'x'.repeat(51) }, 'name'],
    ['a name of 51 emoji', { name: '👩‍👩‍👧‍👦'.repeat(51) }, 'name'],
    ['no expired_time', { expired_time: undefined }, 'expired_time'],
    ['expired_time 0', { expired_time: 0 }, 'expired_time'],
    ['expired_time -2', { expired_time: -2 }, 'expired_time'],
    ['expired_time as text', { expired_time: '-1' }, 'expired_time'],
    ['expired_time in milliseconds', { expired_time: 1_796_069_363_000 }, 'expired_time'],
    ['expired_time beyond 2^53', { expired_time: 2 ** 53 }, 'expired_time'],
    ['no remain_quota', { remain_quota: undefined }, 'remain_quota'],
    ['a quota below zero', { remain_quota: -1 }, 'remain_quota'],
    ['half a quota', { remain_quota: 1.5 }, 'remain_quota'],
    ['a quota as text', { remain_quota: '5' }, 'remain_quota'],
    ['a quota above the bound', { remain_quota: MAX_QUOTA + 1 }, 'remain_quota'],
    ['2^53 without limit', { unlimited_quota: true, remain_quota: 2 ** 53 }, 'remain_quota'],
    ['unlimited_quota as text', { unlimited_quota: 'true' }, 'unlimited_quota'],
    ['model_limits_enabled as number', { model_limits_enabled: 1 }, 'model_limits_enabled'],
    ['model_limits as array', { model_limits: ['m'] }, 'model_limits'],
    ['garbage addresses', { allow_ips: '10.0.0.1\nnonsense' }, 'allow_ips'],
    ['a prefix too long', { allow_ips: '10.0.0.0/33' }, 'allow_ips'],
    ['addresses with commas', { allow_ips: '10.0.0.1,10.0.0.2' }, 'allow_ips'],
    ['an unknown group', { group: 'nowhere' }, 'group'],
    ['a group that is a name of the language', { group: '__proto__' }, 'group'],
    ['a closed group', { group: 'vip' }, 'group'],
    ['routes that are not JSON', { vendor_routes: '{acme' }, 'vendor_routes'],
    ['routes that are a list', { vendor_routes: '["acme"]' }, 'vendor_routes'],
    ['nested routes', { vendor_routes: '{"acme":{"x":"open"}}' }, 'vendor_routes'],
    ['routes from nothing', { vendor_routes: '{"":"open"}' }, 'vendor_routes'],
    ['routes to nothing', { vendor_routes: '{"acme":""}' }, 'vendor_routes'],
    ['routes to an unknown group', { vendor_routes: '{"acme":"nowhere"}' }, 'vendor_routes'],
    ['routes to a closed group', { vendor_routes: '{"acme":"vip"}' }, 'vendor_routes'],
  ])(
    'POST /api/token/ with %s is a 400 that names the field, and creates nothing',
    async (_, fields, named) => {
      const before = await count(ANN)
      const answer = await create(ANN, tokenBody('refused', fields))
      expect(answer).toMatchObject({ status: 400, success: false })
      expect(answer.message).toMatch(new RegExp(`^${named}: `))
      expect(await count(ANN)).toBe(before)
    },
  )

  test.each([
    ['no body', undefined],
    ['half an object', '{"name":"x"'],
    ['a list', '[]'],
    ['null', 'null'],
    ['bytes that are not text', Buffer.from([0x22, 0xff, 0x22])],
  ])('POST /api/token/ with an unreadable or invalid body is a 400: %s', async (_, body) => {
    expect(await create(ANN, body)).toMatchObject({ status: 400, success: false })
  })

  test("of two simultaneous requests for a user's last possible token, exactly one succeeds, and later ones fail", async () => {
    const both = await Promise.all(['one', 'other'].map((name) => create(NEAR, tokenBody(name))))
    expect(both.map(({ status }) => status)).toEqual(expect.arrayContaining([200, 400]))
    expect(both.find(({ status }) => status === 400)?.message).toContain(String(MAX_TOKENS))
    expect(await count(NEAR)).toBe(MAX_TOKENS)
    expect(await create(NEAR, tokenBody('third'))).toMatchObject({ status: 400, success: false })
  })
})
