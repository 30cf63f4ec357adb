import process from 'node:process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { logIn } from '../fixtures/console.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const ADMIN = { id: 3, accessToken: 'the-access-token-of-an-admin' }
const OTHER_ADMIN = { id: 4, accessToken: 'the-access-token-of-another-admin' }
const PASSWORD = 'correct horse'
/** 1,000,000,000 × quota_per_unit. */
const BOUND = 500_000_000_000_000

type Request = Parameters<typeof manage>[2]
interface Shown {
  readonly id: number
  readonly username: string
  readonly [field: string]: unknown
}
interface UserPage {
  readonly page: number
  readonly page_size: number
  readonly total: number
  readonly items: readonly Shown[]
}

let fixture: Fixture
const as =
  (account: typeof ANN) =>
  <Data = Shown>(request: Request, body?: object | string) =>
    manage<Data>(fixture.gateway.url, account, request, body)
const [root, admin, ann] = [as(ROOT_ACCOUNT), as(ADMIN), as(ANN)]

beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 }, search: { requests: 0 } },
    groups: { default: {}, vip: { open: false } },
    models: priced(['m', 'v']),
    channels: [channel('m', upstream.baseUrl('m')), channel('v', upstream.baseUrl('v'), { groups: ['vip'] })],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }),
      user(3, 'admin', [], { access_token: ADMIN.accessToken, role: 10 }),
      user(4, 'other', [], { access_token: OTHER_ADMIN.accessToken, role: 10 }),
      user(5, 'fixed', [], { status: 1 }),
    ],
  }))
})
afterAll(() => fixture?.close())

let made = 0
/** Creates a user with a password and a key. */
async function createUserWithKey(fields: object = {}): Promise<{ id: number; username: string }> {
  made += 1
  const answer = await root('POST /api/user/', { username: `new${made}`, password: PASSWORD, ...fields })
  expect(answer.status).toBe(200)
  return answer.data
}

describe('access to the administration of users', () => {
  test.each<[Request, object?]>([
    ['GET /api/user/'],
    ['GET /api/user/search?keyword=a'],
    ['GET /api/user/2'],
    ['POST /api/user/', { username: 'x', password: PASSWORD }],
    ['PUT /api/user/', { id: 2, remark: 'x' }],
    ['DELETE /api/user/2'],
    ['POST /api/user/manage', { id: 2, action: 'promote' }],
  ])(
    'a path for the management of users refuses common users, API keys and unknown clients: %s',
    async (request, body) => {
      const common = await ann(request, body)
      expect(common).toMatchObject({ status: 403, success: false, body: { code: 'role_too_low' } })
      expect((await as({ id: 2, accessToken: 'sk-ann' })(request, body)).status).toBe(401)
      expect((await as({ id: 1, accessToken: '' })(request, body)).status).toBe(401)
    },
  )
})

describe('POST /api/user/', () => {
  test('POST /api/user/ creates a user who can log in, and returns it without secrets', async () => {
    const { status, data } = await admin('POST /api/user/', {
      username: 'Zoë',
      password: PASSWORD,
      display_name: '👩‍👩‍👧‍👦'.repeat(64),
      group: 'vip',
      quota: 5,
      remark: 'pays late',
      status: 2,
      id: 77,
      used_quota: 9,
    })
    expect(status).toBe(200)
    expect(data).toMatchObject({
      username: 'Zoë',
      display_name: '👩‍👩‍👧‍👦'.repeat(64),
      role: 1,
      status: 1,
      group: 'vip',
      quota: 5,
      used_quota: 0,
      remark: 'pays late',
      email: '',
    })
    expect(data['created_time']).toBeGreaterThan(1_760_000_000)
    expect(data.id).not.toBe(77)
    expect(Object.keys(data)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/password|access|hash/)]),
    )
    expect((await logIn(fixture.gateway.url, { username: 'Zoë', password: PASSWORD })).status).toBe(200)
    expect((await admin(`GET /api/user/${data.id}`)).data).toEqual({
      ...data,
      last_active: expect.any(Number),
    })
  })

  test('POST /api/user/ only requires a name and a password', async () => {
    const { data } = await admin('POST /api/user/', { username: '__proto__', password: '12345678' })
    expect(data).toMatchObject({
      username: '__proto__',
      display_name: '__proto__',
      role: 1,
      group: 'default',
      quota: 0,
    })
  })

  test.each([
    [{ password: PASSWORD }, 'username: expected a text of 1 to 64 characters'],
    [{ username: 'a\u0007', password: PASSWORD }, 'username: expected'],
    [{ username: ' a', password: PASSWORD }, 'username: expected'],
    [{ username: 'é'.repeat(65), password: PASSWORD }, 'username: expected'],
    [{ username: ['a'], password: PASSWORD }, 'username: expected'],
    [{ username: 'ann', password: PASSWORD }, 'there is a user "ann" already'],
    [{ username: 'x' }, 'password: expected a text of 8 to 128 characters'],
    [{ username: 'x', password: '👩‍👩‍👧‍👦'.repeat(7) }, 'password: expected a text of 8 to 128 characters'],
    [{ username: 'x', password: 'x'.repeat(129) }, 'password: expected a text of 8 to 128 characters'],
    [{ username: 'x', password: '\ud800 lone half' }, 'password: expected a text of 8 to 128 characters'],
    [{ username: 'x', password: 12_345_678 }, 'password: expected a text of 8 to 128 characters'],
    [{ username: 'x', password: PASSWORD, group: 'nope' }, 'group: there is no group "nope"'],
    [{ username: 'x', password: PASSWORD, group: '__proto__' }, 'group: there is no group "__proto__"'],
    [{ username: 'x', password: PASSWORD, quota: -1 }, 'quota: expected whole quota units from 0'],
    [{ username: 'x', password: PASSWORD, quota: 1.5 }, 'quota: expected a whole number'],
    [{ username: 'x', password: PASSWORD, quota: '5' }, 'quota: expected a whole number'],
    [
      { username: 'x', password: PASSWORD, quota: BOUND + 1 },
      `quota: expected whole quota units from 0 to ${BOUND}`,
    ],
    [
      { username: 'x', password: PASSWORD, role: 5 },
      'role: expected 1 (common user), 10 (admin) or 100 (root)',
    ],
    [{ username: 'x', password: PASSWORD, role: '1' }, 'role: expected 1'],
    [
      { username: 'x', password: PASSWORD, remark: 'x'.repeat(256) },
      'remark: expected a text of at most 255',
    ],
    ['null', 'expected an object with the fields of a user'],
  ])('POST /api/user/ with %j is a 400', async (body, sentence) => {
    const answer = await admin('POST /api/user/', body)
    expect([answer.status, answer.message]).toEqual([400, expect.stringContaining(sentence)])
  })

  test.each([8, 128])('a password may have %i user-perceived characters of 15 bytes each', async (count) => {
    const password = '👩🏽‍🚀'.repeat(count)
    const { username } = await createUserWithKey({ password })
    expect((await logIn(fixture.gateway.url, { username, password })).status).toBe(200)
  })

  test('a user may be created with the largest possible quota', async () => {
    expect(await createUserWithKey({ quota: BOUND })).toMatchObject({ quota: BOUND })
  })
})

describe("roles below the administrator's own", () => {
  test.each([
    ['an admin, an admin', ADMIN, 10],
    ['an admin, root', ADMIN, 100],
    ['root, root', ROOT_ACCOUNT, 100],
  ])(
    "an administrator cannot give a user a role that is not below the administrator's own: %s",
    async (_, account, role) => {
      const body = { username: 'climber', password: PASSWORD, role }
      expect(await as(account)('POST /api/user/', body)).toMatchObject({
        status: 403,
        body: { code: 'role_too_low' },
      })
      const { id } = await createUserWithKey()
      expect((await as(account)('PUT /api/user/', { id, role })).status).toBe(403)
      expect((await root(`GET /api/user/${id}`)).data).toMatchObject({ role: 1 })
    },
  )

  test('an admin cannot promote a user; root can promote and demote users', async () => {
    const { id } = await createUserWithKey()
    expect((await admin('POST /api/user/manage', { id, action: 'promote' })).status).toBe(403)
    expect(await root('POST /api/user/manage', { id, action: 'promote' })).toMatchObject({
      data: { id, role: 10 },
    })
    expect(await root('POST /api/user/manage', { id, action: 'promote' })).toMatchObject({
      status: 400,
      message: expect.stringContaining('has the role 10 already'),
    })
    expect(await root('POST /api/user/manage', { id, action: 'demote' })).toMatchObject({
      data: { id, role: 1 },
    })
    expect((await root('POST /api/user/manage', { id, action: 'demote' })).status).toBe(400)
  })
})

describe('only root acts on users of the same role, or above', () => {
  test.each<[Request, object?]>([
    ['PUT /api/user/', { id: 4, display_name: 'x' }],
    ['PUT /api/user/', { id: 4, password: PASSWORD }],
    ['PUT /api/user/', { id: 1, remark: 'x' }],
    ['PUT /api/user/', { id: 1, quota: 0 }],
    ['DELETE /api/user/4'],
    ['DELETE /api/user/1'],
    ['POST /api/user/manage', { id: 4, action: 'disable' }],
    ['POST /api/user/manage', { username: 'other', action: 'demote' }],
    ['POST /api/user/manage', { id: 1, action: 'add_quota', value: 5 }],
    // An administrator cannot change its own account either.
    ['POST /api/user/manage', { id: 3, action: 'add_quota', value: 5 }],
    ['POST /api/user/manage', { id: 3, action: 'demote' }],
    ['DELETE /api/user/3'],
    ['PUT /api/user/', { id: 3, quota: 5 }],
    ['PUT /api/user/', { id: 3, group: 'vip' }],
    ['PUT /api/user/', { id: 3, role: 1 }],
    ['PUT /api/user/', { id: 3, password: PASSWORD }],
    ['PUT /api/user/', { id: 3, display_name: 'x', username: 'admin2' }],
  ])(
    'an admin cannot manage other admins, root or protected fields of their own account: %s %j',
    async (request, body) => {
      const before = (await root<UserPage>('GET /api/user/?page_size=100')).data.items.slice(-4)
      expect(await admin(request, body)).toMatchObject({
        status: 403,
        success: false,
        body: { code: 'role_too_low' },
      })
      expect((await root<UserPage>('GET /api/user/?page_size=100')).data.items.slice(-4)).toEqual(before)
    },
  )

  test('an admin may change display name, email and remark of their own account, and send role and group unchanged', async () => {
    const { data: before } = await admin('GET /api/user/3')
    const { group, role, username } = before
    const answer = await admin('PUT /api/user/', {
      id: 3,
      display_name: 'Admin',
      email: 'admin@example.com',
      remark: 'mine',
      group,
      role,
      username,
      password: null,
    })
    expect(answer).toMatchObject({
      status: 200,
      data: {
        ...before,
        display_name: 'Admin',
        email: 'admin@example.com',
        remark: 'mine',
        version: expect.any(String),
      },
    })
  })

  test('root may manage admins and its own account', async () => {
    expect((await root('PUT /api/user/', { id: 4, remark: 'seen' })).data).toMatchObject({ remark: 'seen' })
    expect((await root('PUT /api/user/', { id: 1, quota: 7, role: 100 })).data).toMatchObject({
      quota: 7,
      role: 100,
    })
  })
})

describe('the last root user', () => {
  test.each<[Request, object?]>([
    ['POST /api/user/manage', { id: 1, action: 'disable' }],
    ['POST /api/user/manage', { id: 1, action: 'demote' }],
    ['POST /api/user/manage', { id: 1, action: 'delete' }],
    ['PUT /api/user/', { id: 1, role: 10 }],
    ['DELETE /api/user/1'],
  ])('the last root user cannot be demoted, disabled or deleted: %s %j', async (request, body) => {
    const answer = await root(request, body)
    expect([answer.status, answer.message]).toEqual([
      400,
      '"root" is the last root user: it cannot be disabled, demoted or deleted',
    ])
  })
})

describe('lists of users', () => {
  test('the list of users has the newest first, and is divided into pages', async () => {
    const all = (await admin<UserPage>('GET /api/user/?page_size=100')).data
    expect(all).toMatchObject({ page: 1, page_size: 100, total: all.items.length })
    const ids = all.items.map(({ id }) => id)
    expect(ids).toEqual(ids.toSorted((a, b) => b - a))
    expect(ids.at(-1)).toBe(1)
    const second = (await admin<UserPage>('GET /api/user/?p=2&page_size=2')).data
    expect(second).toEqual({ page: 2, page_size: 2, total: all.total, items: all.items.slice(2, 4) })
    expect((await admin<UserPage>('GET /api/user/')).data.page_size).toBe(10)
    expect((await admin<UserPage>('GET /api/user/?p=999')).data).toMatchObject({ page: 999, items: [] })
  })

  test('a search for users finds them by part of a name or e-mail address in either case, by id, and by group', async () => {
    const { id } = await createUserWithKey({ username: 'Søren', display_name: 'K. 100%', group: 'vip' })
    await root('PUT /api/user/', { id, email: 'sk@example.dk' })
    const found = async (query: string) =>
      (await admin<UserPage>(`GET /api/user/search?${query}`)).data.items.map(({ username }) => username)
    for (const keyword of ['SØR', 'k. 1', '100%', 'EXAMPLE.dk', String(id)]) {
      expect(await found(`keyword=${encodeURIComponent(keyword)}`)).toContain('Søren')
    }
    expect(await found('keyword=S%C3%B8ren&group=default')).toEqual([])
    expect(await found('keyword=S%C3%B8ren&group=vip')).toEqual(['Søren'])
    expect(await found('keyword=nobody-at-all')).toEqual([])
    expect((await admin<UserPage>('GET /api/user/search')).data.total).toBe(
      (await admin<UserPage>('GET /api/user/')).data.total,
    )
  })
})

describe('the id of a user', () => {
  test.each(['-1', '0', '9007199254740992', '1e3', '1.0', 'x', '%31', '0x1', '99999999999999999'])(
    'the id of a user in a path cannot be %s',
    async (id) => {
      expect((await admin(`GET /api/user/${id}`)).status).toBe(400)
      expect((await admin(`DELETE /api/user/${id}`)).status).toBe(400)
    },
  )

  test.each([-1, 0, 2 ** 53, '1', 1.5, null])('the id of a user in a body cannot be %j', async (id) => {
    expect((await admin('PUT /api/user/', { id, remark: 'x' })).status).toBe(400)
    expect((await admin('POST /api/user/manage', { id, action: 'disable' })).status).toBe(400)
  })

  test('the id of a user that does not exist is a 404', async () => {
    expect((await admin('GET /api/user/9007199254740991')).status).toBe(404)
    expect((await admin('PUT /api/user/', { id: 999, remark: 'x' })).status).toBe(404)
    expect((await admin('DELETE /api/user/999')).status).toBe(404)
    expect((await admin('POST /api/user/manage', { username: 'nobody', action: 'disable' })).status).toBe(404)
  })
})

describe('PUT /api/user/', () => {
  test('PUT /api/user/ writes only the fields that are sent', async () => {
    const { id } = await createUserWithKey()
    const { data: before } = await admin(`GET /api/user/${id}`)
    expect((await admin('PUT /api/user/', { id, remark: 'x', status: 2, used_quota: 5 })).data).toEqual({
      ...before,
      remark: 'x',
      version: expect.any(String),
    })
    const fields = {
      username: `renamed${id}`,
      display_name: 'R',
      group: 'vip',
      quota: 3,
      email: 'r@example.com',
    }
    expect((await admin('PUT /api/user/', { id, ...fields, remark: '' })).data).toEqual({
      ...before,
      ...fields,
      left: fields.quota,
      version: expect.any(String),
    })
    expect((await logIn(fixture.gateway.url, { username: fields.username, password: PASSWORD })).status).toBe(
      200,
    )
    expect((await root('PUT /api/user/', { id, role: 10 })).data).toMatchObject({ role: 10 })
  })

  test.each([
    [{ quota: -1 }, 'quota: expected whole quota units from 0'],
    [{ quota: '5' }, 'quota: expected a whole number'],
    [{ quota: BOUND + 1 }, 'quota: expected whole quota units from 0'],
    [{ email: 'nobody' }, 'email: expected an e-mail address, or an empty text'],
    [{ username: '' }, 'username: expected'],
    [{ username: 'ann' }, 'there is a user "ann" already'],
    [{ group: 'nope' }, 'group: there is no group "nope"'],
    [{ password: 'short' }, 'password: expected a text of 8 to 128 characters'],
  ])('PUT /api/user/ with %j is a 400, and changes nothing', async (fields, sentence) => {
    const { id } = await createUserWithKey()
    const { data: before } = await admin(`GET /api/user/${id}`)
    const answer = await admin('PUT /api/user/', { id, remark: 'changed', ...fields })
    expect([answer.status, answer.message]).toEqual([400, expect.stringContaining(sentence)])
    expect((await admin(`GET /api/user/${id}`)).data).toEqual(before)
  })

  test("a change of a user's group by PUT /api/user/ applies to the user's next call", async () => {
    expect((await fixture.chat('ann', ask('v'))).status).toBe(503)
    await admin('PUT /api/user/', { id: 2, group: 'vip' })
    expect((await fixture.chat('ann', ask('v'))).status).toBe(200)
    await admin('PUT /api/user/', { id: 2, group: 'default' })
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  })
})

describe('POST /api/user/manage', () => {
  test('POST /api/user/manage disables or enables a user, by id or by name, from the next call', async () => {
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
    expect(await admin('POST /api/user/manage', { username: 'ann', action: 'disable' })).toMatchObject({
      data: { id: 2, status: 2 },
    })
    const refused = await fixture.chat('ann', ask('m'))
    expect([refused.status, refused.json().error.code]).toEqual([403, 'user_disabled'])
    expect((await ann('GET /api/user/self')).status).toBe(403)
    const both = { id: 2, username: 'ann', action: 'enable' }
    expect((await admin('POST /api/user/manage', both)).data).toMatchObject({ status: 1 })
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
    expect((await ann('GET /api/user/self')).status).toBe(200)
  })

  test('POST /api/user/manage changes a user status that gateway.yaml declares, until the next reload', async () => {
    const status = async () => (await admin('GET /api/user/5')).data.status
    expect((await admin('POST /api/user/manage', { id: 5, action: 'disable' })).status).toBe(200)
    expect(await status()).toBe(2)
    process.kill(fixture.gateway.pid, 'SIGHUP')
    await expect.poll(status).toBe(1)
  })

  test.each([
    [{ id: 2 }, 'action: expected one of disable, enable, delete, promote, demote, add_quota'],
    [{ id: 2, action: 'explode' }, 'action: expected one of'],
    [{ id: 2, action: 'constructor' }, 'action: expected one of'],
    [{ action: 'disable' }, 'id: expected the id of a user, or its username'],
    [{ username: '', action: 'disable' }, 'id: expected the id of a user, or its username'],
    [{ id: 2, username: 'other', action: 'disable' }, 'username: expected the name of the user 2'],
    [{ id: 2, username: '', action: 'disable' }, 'username: expected the name of the user 2'],
    [{ id: 2, action: 'add_quota' }, 'value: expected a whole number of quota units'],
    [
      { id: 2, action: 'add_quota', value: 5, mode: 'multiply' },
      'mode: expected one of add, subtract, override',
    ],
    [{ id: 2, action: 'add_quota', value: 0 }, 'value: expected whole quota units from 1'],
    [{ id: 2, action: 'add_quota', value: -1 }, 'value: expected whole quota units from 1'],
    [{ id: 2, action: 'add_quota', value: -1, mode: 'override' }, 'value: expected whole quota units from 0'],
    [{ id: 2, action: 'add_quota', value: 1.5 }, 'value: expected a whole number'],
    [{ id: 2, action: 'add_quota', value: '5' }, 'value: expected a whole number'],
    [
      { id: 2, action: 'add_quota', value: BOUND + 1, mode: 'override' },
      'value: expected whole quota units from 0',
    ],
  ])('POST /api/user/manage with %j is a 400', async (body, sentence) => {
    const answer = await admin('POST /api/user/manage', body)
    expect([answer.status, answer.message]).toEqual([400, expect.stringContaining(sentence)])
  })
})

describe('a deleted user', () => {
  test.each<[string, (id: number) => [Request, object?]]>([
    ['DELETE /api/user/:id', (id) => [`DELETE /api/user/${id}`]],
    ['POST /api/user/manage', (id) => ['POST /api/user/manage', { id, action: 'delete' }]],
  ])('a user deleted by %s is removed everywhere, and the name may be used again', async (_, request) => {
    const { id, username } = await createUserWithKey()
    const answer = await admin<undefined>(...request(id))
    expect(answer).toMatchObject({ status: 200, body: { success: true, message: '' } })
    expect((await admin(`GET /api/user/${id}`)).status).toBe(404)
    expect((await admin(...request(id))).status).toBe(404)
    expect((await admin<UserPage>(`GET /api/user/search?keyword=${username}`)).data.items).not.toContainEqual(
      expect.objectContaining({ id }),
    )
    expect((await logIn(fixture.gateway.url, { username, password: PASSWORD })).status).toBe(401)
    const again = await admin('POST /api/user/', { username, password: PASSWORD })
    expect([again.status, again.message]).toEqual([200, ''])
    const found = (await admin<UserPage>(`GET /api/user/search?keyword=${username}`)).data.items
    expect(found.filter((user) => user.username === username)).toHaveLength(1)
    expect(found).not.toContainEqual(expect.objectContaining({ id }))
  })

  test('the tokens of a deleted user are refused from the next call, even after a restart that declares the user', async () => {
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
    expect((await admin('DELETE /api/user/2')).status).toBe(200)
    const refused = await fixture.chat('ann', ask('m'))
    expect([refused.status, refused.json().error.code]).toEqual([401, 'token_deleted'])
    expect(await ann('GET /api/user/self')).toMatchObject({ status: 401, message: 'invalid access token' })
    await fixture.gateway.restart()
    expect((await fixture.chat('ann', ask('m'))).status).toBe(401)
    expect((await admin('GET /api/user/2')).status).toBe(404)
  })
})
