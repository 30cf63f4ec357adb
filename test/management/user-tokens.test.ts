import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const ADMIN = { id: 3, accessToken: 'the-access-token-of-an-admin' }
/** A user, an administrator and a root user, whose secrets others try to replace. */
const OTHERS = [1, 10, 100].map((role) => ({
  id: 5 + role,
  role,
  accessToken: `the-access-token-of-${role}`,
}))

interface Shown {
  readonly id: number
  readonly key: string
  readonly status: number
}

let fixture: Fixture
const as =
  (account: typeof ANN) =>
  <Data = Shown>(request: Parameters<typeof manage>[2], body?: object) =>
    manage<Data>(fixture.gateway.url, account, request, body)
const [root, admin, ann] = [as(ROOT_ACCOUNT), as(ADMIN), as(ANN)]
const NEW = { name: 'laptop', expired_time: -1, remain_quota: 0, unlimited_quota: true }

beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
    groups: { default: {}, vip: { open: false } },
    options: { max_user_tokens: 3 },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }),
      user(3, 'admin', [], { access_token: ADMIN.accessToken, role: 10 }),
      user(4, 'other', [token('other')], { role: 10 }),
      user(5, 'full', [token('one'), token('two'), token('three')]),
      ...OTHERS.map(({ id, accessToken, role }) =>
        user(id, `user${id}`, [token(`of${id}`)], { access_token: accessToken, role }),
      ),
    ],
  }))
})
afterAll(() => fixture?.close())

describe('an administrator', () => {
  test('an administrator can create an API key for a user; it is shown whole only in the response, and works at once', async () => {
    const made = await admin('POST /api/user/2/tokens', NEW)
    expect(made).toMatchObject({ status: 200, data: { user_id: 2, name: 'laptop', status: 1 } })
    expect(made.data.key).toMatch(/^sk-[A-Za-z0-9]{48}$/)
    expect((await fixture.chat(made.data.key.slice(3), ask('m'))).status).toBe(200)
    const listed = await admin<{ total: number; items: Shown[] }>('GET /api/user/2/tokens')
    expect(listed.data).toMatchObject({ total: 2, items: [{ name: 'laptop' }, { name: 'token-ann' }] })
    expect(JSON.stringify(listed.body)).not.toContain(made.data.key)
  })

  test("an administrator can disable a user's API key from the next call, and enable it again", async () => {
    const { data } = await admin<{ items: Shown[] }>('GET /api/user/2/tokens?page_size=1&p=2')
    const [own] = data.items
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
    expect(await admin('PUT /api/user/2/tokens', { id: own?.id, status: 2 })).toMatchObject({
      status: 200,
      data: { id: own?.id, status: 2 },
    })
    expect((await fixture.chat('ann', ask('m'))).status).toBe(401)
    expect((await admin('PUT /api/user/2/tokens', { id: own?.id, status: 1 })).data.status).toBe(1)
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  })

  test.each(['GET', 'POST', 'PUT'] as const)(
    'an administrator has no access to API keys of another administrator: %s',
    async (method) => {
      const body = method === 'POST' ? NEW : method === 'PUT' ? { id: 2, status: 2 } : undefined
      for (const id of [1, 3, 4]) {
        const refused = await admin(`${method} /api/user/${id}/tokens`, body)
        expect(refused).toMatchObject({ status: 403, message: expect.stringContaining('is not below yours') })
      }
      expect((await fixture.chat('other', ask('m'))).status).toBe(200)
    },
  )

  test.each([
    ['a user that there is not', 'GET /api/user/99/tokens', undefined, 404, 'no user'],
    ["another user's token", 'PUT /api/user/2/tokens', { id: 3, status: 2 }, 404, 'no token'],
    ['another status', 'PUT /api/user/2/tokens', { id: 1, status: 3 }, 400, 'expected 1 (enabled) or 2'],
    ['no status', 'PUT /api/user/2/tokens', { id: 1 }, 400, 'expected 1 (enabled) or 2'],
    ['a group closed to the user', 'POST /api/user/2/tokens', { ...NEW, group: 'vip' }, 400, 'is closed'],
    ['too many keys', 'POST /api/user/5/tokens', NEW, 400, 'max_user_tokens'],
    ['no name', 'POST /api/user/2/tokens', { ...NEW, name: '' }, 400, 'name: expected'],
  ] as const)(
    "an administrator who manages a user's API keys gets an error that explains what is wrong: %s",
    async (_, request, body, status, message) => {
      expect(await admin(request, body)).toMatchObject({ status, message: expect.stringContaining(message) })
    },
  )
})

test('root can manage the API keys of all users', async () => {
  const made = await root('POST /api/user/4/tokens', NEW)
  expect(made.status).toBe(200)
  expect((await root('PUT /api/user/4/tokens', { id: made.data.id, status: 2 })).data.status).toBe(2)
})

test('a user who is no administrator can neither list nor create API keys of other users', async () => {
  for (const request of ['GET /api/user/2/tokens', 'GET /api/user/5/tokens'] as const)
    expect(await ann(request)).toMatchObject({ status: 403 })
  expect(await ann('POST /api/user/2/tokens', NEW)).toMatchObject({ status: 403 })
})

describe('secrets of other users (docs/security.md: Secrets by role)', () => {
  // In this order, because an access token that was revoked stays so.
  test.each([
    ['a user replaces no password, access token or API key of another', ann, []],
    ['an administrator replaces passwords, access tokens and API keys of users of lower roles', admin, [1]],
    ['root replaces passwords, access tokens and API keys of everybody', root, [1, 10, 100]],
  ])('%s', async (_, by, expected) => {
    const replaced = { key: [] as number[], password: [] as number[], accessToken: [] as number[] }
    for (const other of OTHERS) {
      const { data } = await root<{ items: Shown[] }>(`GET /api/user/${other.id}/tokens`)
      const key = data.items[0]?.id
      expect((await by(`POST /api/token/${key}/key`)).status).toBe(404)
      const rotated = await by(`POST /api/user/${other.id}/tokens/${key}/rotate`)
      if (rotated.status === 200) expect(rotated.data.key).toMatch(/^sk-[A-Za-z0-9]{48}$/)
      // The first password revokes no access token.
      await root('PUT /api/user/', { id: other.id, password: 'correct horse', keep_access_tokens: true })
      const set = await by('PUT /api/user/', { id: other.id, password: 'battery staple' })
      const shown = await as(other)('GET /api/user/self')
      expect([rotated, set].map(({ status }) => [200, 403].includes(status))).toEqual([true, true])
      if (rotated.status === 200) replaced.key.push(other.role)
      if (set.status === 200) replaced.password.push(other.role)
      if (shown.status === 401) replaced.accessToken.push(other.role)
    }
    expect(replaced).toEqual({ key: expected, password: expected, accessToken: expected })
  })
})
