import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ROOT, token, user } from '../fixtures/configuration.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask, startFixture, type Fixture } from '../fixtures/fixture.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ADMIN = { id: 4, accessToken: 'the-access-token-of-an-admin' }
const KEY = 'sk-secret-of-root'

let fixture: Fixture
let elsewhere: ScriptedUpstream
beforeAll(async () => {
  elsewhere = await startUpstream()
  fixture = await startFixture(() => ({
    rate_limits: {},
    options: { unpriced_models: 'free' },
    users: [ROOT, user(4, 'ada', [token('ada')], { access_token: ADMIN.accessToken, role: 10 })],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await elsewhere?.stop()
})

let id = 0
beforeEach(async () => {
  const { data } = await manage<{ ids: number[] }>(fixture.gateway.url, ROOT_ACCOUNT, 'POST /api/channel/', {
    name: 'lane',
    type: 1,
    key: KEY,
    base_url: bare(fixture.upstream),
    models: 'm',
  })
  id = data.ids[0] ?? 0
  for (const upstream of [fixture.upstream, elsewhere]) upstream.script('lane', { kind: 'whole' })
})
afterEach(async () => {
  await as(ROOT_ACCOUNT, `DELETE /api/channel/${id}`)
  for (const upstream of [fixture.upstream, elsewhere]) upstream.forget('lane')
})

function bare(upstream: ScriptedUpstream): string {
  return upstream.baseUrl('lane').replace(/\/v1$/, '')
}

const as = <Data>(account: typeof ADMIN, request: Parameters<typeof manage>[2], body?: object) =>
  manage<Data>(fixture.gateway.url, account, request, body)

const change = (account: typeof ADMIN, fields: object) => as(account, 'PUT /api/channel/', { id, ...fields })

const sentElsewhere = () => elsewhere.received('lane').map(({ headers }) => headers.authorization)

describe('the stored key of a channel, which administrators below root may not read', () => {
  test.each([
    ['another port', () => bare(elsewhere)],
    ['another scheme', () => bare(fixture.upstream).replace('http:', 'https:')],
    ['the same host by another name', () => bare(fixture.upstream).replace('127.0.0.1', 'localhost')],
    ['the address of the vendor', () => ''],
  ])(
    "a change of a channel's address without its key is refused for admins below root: %s",
    async (_, address) => {
      const { status, message } = await change(ADMIN, { base_url: address() })
      expect([status, message]).toEqual([
        403,
        'key: expected its keys anew, as the channel gets another address; only root may change it without them',
      ])
      await as(ADMIN, `GET /api/channel/test/${id}`)
      await fixture.chat('sk-ada', ask('m'))
      expect(sentElsewhere()).toEqual([])
      expect(fixture.upstream.received('lane').map(({ headers }) => headers.authorization)).toEqual([
        `Bearer ${KEY}`,
        `Bearer ${KEY}`,
      ])
    },
  )

  test('the stored key of a channel is not sent to the default address of another channel type', async () => {
    await change(ROOT_ACCOUNT, { base_url: '' })
    expect((await change(ADMIN, { type: 14 })).status).toBe(403)
  })

  test('the stored key of a channel is replaced by the one that is sent with the new address', async () => {
    expect((await change(ADMIN, { base_url: bare(elsewhere), key: 'sk-of-the-admin' })).status).toBe(200)
    await as(ADMIN, `GET /api/channel/test/${id}`)
    expect(sentElsewhere()).toEqual(['Bearer sk-of-the-admin'])
    const { data } = await as<{ key: string }>(ROOT_ACCOUNT, `POST /api/channel/${id}/key`)
    expect(data.key).toBe('sk-of-the-admin')
  })

  test('the stored key of a channel is kept when an administrator changes the path, but not the host, of its address', async () => {
    const same = bare(fixture.upstream).replace('http://', 'HTTP://')
    expect((await change(ADMIN, { base_url: `${same}/v2`, models: 'm,n' })).status).toBe(200)
    expect((await change(ADMIN, { name: 'lane', status: 2 })).status).toBe(200)
  })

  test('the stored key of a channel is kept when root changes its address, because root may read it', async () => {
    expect((await change(ROOT_ACCOUNT, { base_url: bare(elsewhere) })).status).toBe(200)
    await as(ADMIN, `GET /api/channel/test/${id}`)
    expect(sentElsewhere()).toEqual([`Bearer ${KEY}`])
  })
})

test('headers of a channel go to a new address only if they are sent again', async () => {
  await change(ROOT_ACCOUNT, { header_override: '{"x-api-key":"secret-in-a-header"}' })
  const moved = { base_url: bare(elsewhere), key: 'sk-of-the-admin' }
  const refused = await change(ADMIN, moved)
  expect([refused.status, refused.message]).toEqual([403, expect.stringContaining('header_override: ')])
  expect((await change(ADMIN, { ...moved, header_override: '{"x-api-key":"mine"}' })).status).toBe(200)
  await as(ADMIN, `GET /api/channel/test/${id}`)
  expect(elsewhere.only('lane').headers).toMatchObject({ 'x-api-key': 'mine' })
})
