import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const ADMIN = { id: 3, accessToken: 'the-access-token-of-an-admin' }

type Key = Readonly<Record<string, unknown>> & { readonly id: number; readonly key: string }
interface Page {
  readonly total: number
  readonly items: readonly (Key & { readonly username: string; readonly name: string })[]
}

interface Entry {
  readonly action: string
  readonly object: { readonly name: string; readonly owner?: { readonly name: string } }
  readonly changes: readonly { readonly field: string }[]
}

const NO_LIMIT = { requests: 0 }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: NO_LIMIT, critical: NO_LIMIT, search: { requests: 2, window: '1h' } },
    groups: { default: {}, sales: { open: false } },
    models: priced(['m', 'n']),
    channels: [channel('m', upstream.baseUrl('m'), { groups: ['default', 'sales'] })],
    users: [
      { ...ROOT, tokens: [token('roots')] },
      user(
        2,
        'ann',
        ['laptop', 'rotated', 'deleted', 'spender', 'limited', 'changed'].map((name) =>
          token(`${name}key`, { name }),
        ),
        { access_token: ANN.accessToken, group: 'sales' },
      ),
      user(3, 'admin', [token('admins')], { access_token: ADMIN.accessToken, role: 10 }),
      user(4, 'peer', [token('peers')], { access_token: 'the-access-token-of-a-peer', role: 10 }),
    ],
  }))
})
afterAll(() => fixture?.close())

const as =
  (account: typeof ANN) =>
  <Data = Page>(request: Parameters<typeof manage>[2], body?: object) =>
    manage<Data>(fixture.gateway.url, account, request, body)
const [root, admin, ann] = [as(ROOT_ACCOUNT), as(ADMIN), as(ANN)]

const listed = async (by: typeof root, query = ''): Promise<string[]> => {
  const { data } = await by(`GET /api/token/all?page_size=100&${query}`)
  return data.items.map(({ username, name }) => `${username} ${name}`)
}
const idOf = async (name: string): Promise<number> => {
  const { data } = await root(`GET /api/token/all?page_size=100`)
  return data.items.find((one) => one.name === name)?.id ?? 0
}
const status = async (key: string): Promise<number> => (await fixture.chat(key, ask('m'))).status

describe('the list of the keys of all users', () => {
  test('an administrator lists the keys of users of a lower role and the own ones, root those of all, a user none', async () => {
    const forAdmin = await listed(admin)
    expect(forAdmin).toContain('ann laptop')
    expect(forAdmin).toContain('admin token-admins')
    expect(forAdmin.filter((one) => /^(?:root|peer) /.test(one))).toEqual([])
    expect(await listed(root)).toEqual(
      expect.arrayContaining(['root token-roots', 'peer token-peers', 'ann laptop']),
    )
    expect(await ann('GET /api/token/all')).toMatchObject({ status: 403 })
  })

  test('the list is a page of tokens with masked keys, the name of the user, and whether a budget refuses the calls', async () => {
    const { data } = await admin('GET /api/token/all?p=2&page_size=1')
    expect(data).toMatchObject({ page: 2, page_size: 1, total: 7, items: [{ username: expect.any(String) }] })
    const whole = await admin('GET /api/token/all?page_size=100')
    expect(JSON.stringify(whole.body)).not.toContain('laptopkey')
    const id = await idOf('spender')
    await root('PUT /api/user/2/tokens', { id, budget: 1, budget_period: 'month' })
    expect((await fixture.chat('spenderkey', ask('m'))).json()).toMatchObject({
      error: { code: 'budget_exceeded' },
    })
    const after = await admin('GET /api/token/all?page_size=100')
    const stopped = after.data.items.filter(({ stopped: isStopped }) => isStopped).map(({ name }) => name)
    expect(stopped).toEqual(['spender'])
  })

  test('the list is filtered by group, status and the last four characters of the key, and sorted', async () => {
    expect(await listed(admin, 'group=default')).toEqual(['admin token-admins'])
    expect(await listed(admin, 'last4=pkey')).toEqual(['ann laptop'])
    expect(await listed(admin, 'last4=oots')).toEqual([])
    const made = await admin<Key>('POST /api/user/2/tokens', {
      name: 'made',
      expired_time: -1,
      remain_quota: 0,
      unlimited_quota: true,
    })
    const end = made.data.key.slice(-4)
    expect(await listed(admin, `last4=${end}`)).toEqual(['ann made'])
    await admin('PUT /api/user/2/tokens', { id: made.data.id, status: 2 })
    expect(await listed(admin, 'status=2')).toEqual(['ann made'])
    const names = await listed(admin, 'sort=name&status=1')
    expect(names).toEqual(names.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1)))
    await admin(`DELETE /api/user/2/tokens/${made.data.id}`)
  })

  test.each([
    ['last4=abc', 'last4: expected the last 4 characters of a key'],
    ['status=5', 'status: expected 1 (enabled)'],
    ['sort=key', 'sort: expected one of'],
  ])('a filter that cannot match is refused: %s', async (query, message) => {
    const refused = await admin(`GET /api/token/all?${query}`)
    expect(refused).toMatchObject({ status: 400, message: expect.stringContaining(message) })
  })

  test('only searches by name or user count against the limit of searches', async () => {
    for (let n = 0; n < 4; n += 1) expect((await admin('GET /api/token/all?group=sales')).status).toBe(200)
    expect(await listed(admin, 'keyword=LAP')).toEqual(['ann laptop'])
    expect(await listed(admin, 'user=adm')).toEqual(['admin token-admins'])
    expect((await admin('GET /api/token/all?keyword=lap')).status).toBe(429)
  })
})

const nameOf = (listedAs: string): string => listedAs.split(' ')[1] ?? ''

describe("a user's key", () => {
  test('an administrator changes the limits of a key of a user, which are then the ceiling of its holder', async () => {
    const id = await idOf('limited')
    const fields = { id, model_limits_enabled: true, model_limits: 'n', rate_limit_requests: 5 }
    const changed = await admin<Key>('PUT /api/user/2/tokens', fields)
    expect(changed).toMatchObject({ status: 200, data: { model_limits: 'n', limits_by: 'operator' } })
    expect(await status('limitedkey')).toBe(403)
    const loosened = await ann('PUT /api/token/', { id, model_limits_enabled: false })
    expect(loosened).toMatchObject({ status: 403, body: { code: 'operator_limit' } })
    expect((await admin<Key>(`GET /api/user/2/tokens/${id}`)).data).toMatchObject({ id, model_limits: 'n' })
  })

  test('an administrator gives a key of a user a new key, and deletes it', async () => {
    const [rotated, deleted] = [await idOf('rotated'), await idOf('deleted')]
    const fresh = await admin<Key>(`POST /api/user/2/tokens/${rotated}/rotate`)
    expect(fresh.headers['cache-control']).toContain('no-store')
    expect([await status('rotatedkey'), await status(fresh.data.key.slice(3))]).toEqual([401, 200])
    expect((await admin(`DELETE /api/user/2/tokens/${deleted}`)).status).toBe(200)
    expect(await status('deletedkey')).toBe(401)
    expect((await admin(`DELETE /api/user/2/tokens/${deleted}`)).status).toBe(404)
  })

  test('a holder gives an own key a new key, but not one of others', async () => {
    const fresh = await ann<Key>(`POST /api/token/${await idOf('laptop')}/rotate`)
    expect([await status('laptopkey'), await status(fresh.data.key.slice(3))]).toEqual([401, 200])
    expect((await ann(`POST /api/token/${await idOf('token-peers')}/rotate`)).status).toBe(404)
    expect(await status('peers')).toBe(200)
  })

  test('a change is written if the version is the present one, and refused with the present token otherwise', async () => {
    const id = await idOf('changed')
    const { data } = await admin<Key>(`GET /api/user/2/tokens/${id}`)
    const change = { id, name: 'renamed', version: data['version'] }
    expect((await admin('PUT /api/user/2/tokens', change)).status).toBe(200)
    expect(await admin('PUT /api/user/2/tokens', change)).toMatchObject({ status: 409 })
  })

  test('the audit log has each change of a key by an administrator, with its owner', async () => {
    const { data } = await root<{ items: readonly Entry[] }>('GET /api/audit?page_size=100&actor=admin')
    const said = data.items.map(
      ({ action, object, changes }) =>
        `${action} ${object.owner?.name} ${object.name} ${changes.map(({ field }) => field).join()}`,
    )
    expect(said).toEqual(
      expect.arrayContaining([
        'key.update ann renamed name',
        'key.update ann rotated key',
        expect.stringMatching(/^key\.update ann limited .*model_limits/),
        expect.stringMatching(/^key\.delete ann deleted /),
      ]),
    )
  })

  test.each([
    ['PUT /api/user/4/tokens', { id: 1, name: 'x' }],
    ['GET /api/user/4/tokens/1', undefined],
    ['DELETE /api/user/1/tokens/1', undefined],
    ['POST /api/user/4/tokens/1/rotate', undefined],
  ] as const)(
    'an administrator has no access to keys of users whose role is not lower: %s',
    async (request, body) => {
      expect(await admin(request, body)).toMatchObject({ status: 403 })
    },
  )

  test.each([
    ['both', { status: 2, name: 'x' }],
    ['none', {}],
    ['neither', { name: null }],
  ])('a change has a status or fields: %s', async (_, fields) => {
    const refused = await admin('PUT /api/user/2/tokens', { id: 2, ...fields })
    expect(refused).toMatchObject({
      status: 400,
      message: expect.stringContaining('expected 1 (enabled) or 2'),
    })
  })
})
