import type { DeclaredToken } from '../../domain/records/token.ts'
import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows } from '../../../test/stores/engines.ts'
import { newUser, SECRETS } from '../../../test/stores/rows.ts'
import type { DeclaredUser } from '../../domain/records/user.ts'
import { hashKey } from '../secrets.ts'

const NOW = 1_760_000_000

function tokenSeed(of: Partial<DeclaredToken> = {}): DeclaredToken {
  return {
    name: 'main',
    key: 'RootKey1',
    status: undefined,
    expired_time: -1,
    remain_quota: 0,
    unlimited_quota: true,
    model_limits_enabled: false,
    model_limits: '',
    allow_ips: null,
    group: '',
    vendor_routes: '',
    ...of,
  }
}

function userSeed(of: Partial<DeclaredUser> = {}): DeclaredUser {
  return {
    id: 1,
    username: 'root',
    role: 100,
    status: undefined,
    group: 'default',
    quota: 500_000_000,
    access_token: 'the access token',
    tokens: [tokenSeed()],
    ...of,
  }
}

/** Adds a key to every token of a seed. */
function withKeys(seeds: readonly DeclaredUser[]): DeclaredUser[] {
  return seeds.map((seed, index) => ({ ...seed, tokens: [tokenSeed({ key: `Key${index}` })] }))
}

describe.each(ENGINES)('users in gateway.yaml, on $name:', (engine) => {
  test('a deleted user that gateway.yaml declares is not created again, even if another user has the name now', async () => {
    const { store } = await openedRows(engine)
    const seeds = [
      userSeed(),
      userSeed({ id: 2, username: 'ann', role: 1, access_token: undefined, status: 2 }),
    ]
    const seed = (): Promise<unknown> => store.write('seedUsers', { seeds: withKeys(seeds), nowSeconds: NOW })
    await seed()
    await store.write('deleteUser', { userId: 2, deleted_time: NOW })
    const again = await store.write('createUser', newUser({ username: 'ann' }))
    expect(await seed()).toEqual({ users: [], tokens: [] })
    expect(await store.read('userById', again.id)).toMatchObject({ username: 'ann', status: 1 })
  })

  test('a budget or rate limit in gateway.yaml is applied at every load; limits that the file does not state stay unchanged', async () => {
    const { store } = await openedRows(engine)
    const seed = async (user: DeclaredUser['limits'], token: DeclaredUser['limits']) => {
      const seeds = [userSeed({ limits: user, tokens: [tokenSeed({ limits: token })] })]
      await store.write('seedUsers', { seeds, nowSeconds: NOW })
      const found = await store.read('tokenByKeyHash', hashKey(SECRETS, 'RootKey1'))
      return [found?.user, found?.token].map((of) => [of?.budget, of?.rateLimit.parallel])
    }
    const weekly = { amount: 5, period: 'week' } as const
    const daily = { amount: 7, period: 'day' } as const
    expect(await seed({ budget: weekly }, { rateLimit: { parallel: 3 } })).toEqual([
      [weekly, 0],
      [undefined, 3],
    ])
    expect(await seed(undefined, { budget: daily })).toEqual([
      [weekly, 0],
      [daily, 3],
    ])
    expect(await seed({ budget: null, rateLimit: { parallel: 1 } }, undefined)).toEqual([
      [undefined, 1],
      [daily, 3],
    ])
  })

  test('limits of a token in gateway.yaml count as set by the operator, even if the token had the same limits already', async () => {
    const { store } = await openedRows(engine)
    const seed = async (limits: DeclaredUser['limits']) => {
      const seeds = [userSeed({ tokens: [tokenSeed({ limits })] })]
      const pending = await store.read('pendingDeclaredUsers', { seeds })
      await store.write('seedUsers', { seeds, nowSeconds: NOW })
      expect(await store.read('pendingDeclaredUsers', { seeds })).toEqual([])
      const found = await store.read('tokenByKeyHash', hashKey(SECRETS, 'RootKey1'))
      return [pending.length, found?.token.operator_terms]
    }
    const rateLimit = { requests: 5, tokens: 0, parallel: 0, windowMs: 60_000 }
    const names = ['quota', 'models', 'addresses', 'expires', 'guards', 'toolsets', 'group', 'routes']
    // The seed gives no limit, which an operator has decided.
    const grants = Object.fromEntries(names.map((name) => [name, null]))
    expect(await seed(undefined)).toEqual([1, { grants }])
    const ids = { tokenId: 1, userId: 1 }
    const fields = { rateLimit }
    await store.write('changeToken', { ...ids, fields, maxQuota: 1e9, nowMs: NOW * 1000 })
    expect(await seed({ rateLimit })).toEqual([1, { rateLimit, grants }])
    const budget = { amount: 7, period: 'day' } as const
    expect(await seed({ budget })).toEqual([1, { budget, rateLimit, grants }])
    expect(await seed({ budget: null, rateLimit: { ...rateLimit, requests: 0 } })).toEqual([1, { grants }])
  })

  test('limits that gateway.yaml states for one user or token do not apply to other users or tokens', async () => {
    const { store } = await openedRows(engine)
    const limits = { rateLimit: { parallel: 3 } }
    const seeds = [
      userSeed({ limits, tokens: [tokenSeed({ limits }), tokenSeed({ name: 'two', key: 'K2' })] }),
      userSeed({
        id: undefined,
        access_token: undefined,
        username: 'ada',
        tokens: [tokenSeed({ key: 'K3' })],
      }),
    ]
    await store.write('seedUsers', { seeds, nowSeconds: NOW })
    const found = await Promise.all(
      ['RootKey1', 'K2', 'K3'].map((key) => store.read('tokenByKeyHash', hashKey(SECRETS, key))),
    )
    expect(found.map((one) => [one?.user.rateLimit.parallel, one?.token.rateLimit.parallel])).toEqual([
      [3, 3],
      [3, 0],
      [0, 0],
    ])
  })

  test('gateway.yaml is refused if it declares the key of a deleted token, with a message that names the former user', async () => {
    const { store } = await openedRows(engine)
    const [root, ann] = withKeys([
      userSeed(),
      userSeed({ id: 2, username: 'ann', role: 1, access_token: undefined }),
    ])
    if (!root || !ann) throw new Error('there are two')
    await store.write('seedUsers', { seeds: [root, ann], nowSeconds: NOW })
    await store.write('deleteUser', { userId: 2, deleted_time: NOW })
    const renamed = { ...ann, id: 3, username: 'eve' }
    await expect(store.write('seedUsers', { seeds: [root, renamed], nowSeconds: NOW })).rejects.toThrow(
      'belongs to the deleted token 2 of the user "ann (deleted 2)" already: give it another key',
    )
  })

  test('a renamed user is still the one that gateway.yaml declares under the former name', async () => {
    const { store } = await openedRows(engine)
    const { users } = await store.write('seedUsers', { seeds: [userSeed()], nowSeconds: NOW })
    const userId = users[0]?.id ?? 0
    for (const username of ['once', 'twice'])
      await store.write('changeUser', { userId, fields: { username } })
    expect(await store.write('seedUsers', { seeds: [userSeed({ status: 2 })], nowSeconds: NOW })).toEqual({
      users: [],
      tokens: [],
    })
    expect(await store.read('userById', userId)).toMatchObject({ username: 'twice', status: 2 })
  })

  test('users and tokens in gateway.yaml are created if they do not exist', async () => {
    const { store } = await openedRows(engine)
    const seeds = [
      userSeed(),
      userSeed({ id: undefined, username: 'ada', access_token: undefined, tokens: [] }),
    ]
    const made = await store.write('seedUsers', { seeds, nowSeconds: NOW })
    expect(made.users).toEqual([
      { id: 1, username: 'root' },
      { id: 2, username: 'ada' },
    ])
    for (const { id } of made.users)
      expect(await store.read('userById', id)).toMatchObject({ role: 100, quota: 500_000_000 })
    expect(made.tokens).toEqual([{ id: 1, userId: 1, name: 'main' }])
    const found = await store.read('tokenByKeyHash', hashKey(SECRETS, 'RootKey1'))
    expect(found?.token).toMatchObject({
      user_id: 1,
      name: 'main',
      status: 1,
      unlimited_quota: true,
      created_time: NOW,
    })
  })

  test('a token in gateway.yaml without a key gets a key of 48 letters and digits', async () => {
    const { store } = await openedRows(engine)
    const seeds = [userSeed({ tokens: [tokenSeed({ key: undefined })] })]
    await store.write('seedUsers', { seeds, nowSeconds: NOW })
    expect(await store.read('revealKey', { tokenId: 1, userId: 1 })).toMatch(/^[0-9A-Za-z]{48}$/)
  })

  test('existing users are not overwritten by gateway.yaml, and a new token that it declares is added to them', async () => {
    const { store } = await openedRows(engine)
    await store.write('seedUsers', { seeds: [userSeed()], nowSeconds: NOW })
    const again = userSeed({
      quota: 1,
      group: 'vip',
      access_token: 'another',
      tokens: [
        tokenSeed({ key: 'Other', remain_quota: 5, unlimited_quota: false }),
        tokenSeed({ name: 'new', key: 'New' }),
      ],
    })
    const made = await store.write('seedUsers', { seeds: [again], nowSeconds: NOW + 1 })
    expect(made).toEqual({ users: [], tokens: [{ id: 2, userId: 1, name: 'new' }] })
    expect(await store.read('userByName', 'root')).toMatchObject({ quota: 500_000_000, group: 'default' })
    expect(await store.read('revealKey', { tokenId: 1, userId: 1 })).toBe('RootKey1')
    expect((await store.read('listTokensWithKeys', { userId: 1 }))[0]?.token).toMatchObject({
      unlimited_quota: true,
      remain_quota: 0,
    })
  })

  test('the status of a user or token in gateway.yaml is applied at every load, and without one the status stays', async () => {
    const { store } = await openedRows(engine)
    const seed = (status: 1 | 2 | undefined) =>
      store.write('seedUsers', {
        seeds: [userSeed({ status, tokens: [tokenSeed({ status })] })],
        nowSeconds: NOW,
      })
    const statuses = async () => [
      (await store.read('userByName', 'root'))?.status,
      (await store.read('listTokensWithKeys', { userId: 1 }))[0]?.token.status,
    ]
    await seed(undefined)
    expect(await statuses()).toEqual([1, 1])
    await seed(2)
    expect(await statuses()).toEqual([2, 2])
    await seed(undefined)
    expect(await statuses()).toEqual([2, 2])
    await seed(1)
    expect(await statuses()).toEqual([1, 1])
    // Disables only the user.
    await store.write('seedUsers', { seeds: [userSeed({ status: 2 })], nowSeconds: NOW })
    expect(await statuses()).toEqual([2, 1])
  })

  test('a renamed token in gateway.yaml is recognized by its key: it is not created again, and its status is applied', async () => {
    const { store, database } = await openedRows(engine)
    await store.write('seedUsers', { seeds: [userSeed()], nowSeconds: NOW })
    await database.sql("UPDATE tokens SET name = 'renamed'")
    const seeds = [userSeed({ tokens: [tokenSeed({ status: 2 })] })]
    expect((await store.write('seedUsers', { seeds, nowSeconds: NOW })).tokens).toEqual([])
    expect(await database.sql('SELECT name, status FROM tokens')).toEqual([{ name: 'renamed', status: 2 }])
  })

  test('a deleted token that gateway.yaml declares is not created again', async () => {
    const { store, database } = await openedRows(engine)
    await store.write('seedUsers', { seeds: [userSeed()], nowSeconds: NOW })
    await database.sql(`UPDATE tokens SET deleted_time = ${NOW}`)
    const made = await store.write('seedUsers', {
      seeds: [userSeed({ tokens: [tokenSeed({ status: 2 })] })],
      nowSeconds: NOW,
    })
    expect(made.tokens).toEqual([])
    expect(await database.sql('SELECT status, deleted_time FROM tokens')).toEqual([
      { status: 1, deleted_time: NOW },
    ])
  })

  test('gateway.yaml is refused if its users conflict with existing ones, with a message that names the conflict', async () => {
    const { store } = await openedRows(engine)
    await store.write('createUser', newUser({ id: 1 }))
    const seeds = [userSeed({ id: 2, username: 'bob', access_token: undefined, tokens: [] }), userSeed()]
    await expect(store.write('seedUsers', { seeds, nowSeconds: NOW })).rejects.toThrow(
      'the id 1 belongs to the user "ada" already',
    )
    expect(await store.read('userByName', 'bob')).toBeNull()
  })

  test('only users of gateway.yaml that differ from the database count as pending changes', async () => {
    const { store, database } = await openedRows(engine)
    const names = ['same', 'disabled', 'deleted', 'renamed', 'budgeted', 'keyless', 'enabled', 'rekeyed']
    const seedOf = (username: string, of: Partial<DeclaredUser> = {}, token: Partial<DeclaredToken> = {}) =>
      userSeed({
        id: undefined,
        username,
        access_token: undefined,
        tokens: [tokenSeed({ key: `Key${username}`, ...token })],
        ...of,
      })
    const seeds = names.map((username) => seedOf(username))
    await store.write('seedUsers', { seeds, nowSeconds: NOW })
    const pending = async (of: readonly DeclaredUser[]) =>
      (await store.read('pendingDeclaredUsers', { seeds: of })).map((index) => of[index]?.username)
    expect(await pending(seeds)).toEqual([])
    await database.sql(`UPDATE tokens SET deleted_time = ${NOW}, status = 2 WHERE user_id = 3`)
    await database.sql(
      "UPDATE users SET first_username = 'renamed', username = 'other' WHERE username = 'renamed'",
    )
    const next = [
      seedOf('same', { status: 1 }, { status: 1 }),
      seedOf('disabled', { status: 2 }),
      seedOf('deleted', {}, { status: 1 }),
      seedOf('renamed', { limits: { budget: { amount: 1, period: 'day' } } }),
      seedOf('budgeted', {}, { limits: { rateLimit: { requests: 3 } } }),
      seedOf('keyless', {}, { key: undefined }),
      seedOf('enabled', {
        tokens: [tokenSeed({ key: 'Keyenabled' }), tokenSeed({ name: 'two', key: 'K2' })],
      }),
      seedOf('rekeyed', {}, { key: 'Another' }),
      seedOf('new'),
    ]
    expect(await pending(next)).toEqual(['disabled', 'renamed', 'budgeted', 'enabled', 'new'])
    await store.write('seedUsers', { seeds: next, nowSeconds: NOW })
    expect(await pending(next.filter(({ username }) => username !== 'renamed'))).toEqual([])
  })

  test('thousands of users of gateway.yaml are created at once, all or none; those without an id get ids above the stated ones', async () => {
    const { store } = await openedRows(engine)
    const seeds = Array.from({ length: 1_200 }, (_, index) =>
      userSeed({
        id: index === 600 ? 5_000 : undefined,
        username: `user${index}`,
        access_token: `token${index}`,
        tokens: [0, 1, 2].map((token) => tokenSeed({ name: `t${token}`, key: `Key${index}x${token}` })),
      }),
    )
    const last = seeds.at(-1) as DeclaredUser
    const refused: [DeclaredUser, string][] = [
      [userSeed({ id: 5_000, username: 'late', access_token: undefined }), 'the id 5000 belongs to the user'],
      [userSeed({ id: undefined, username: 'USER7', access_token: undefined }), 'differs from it in case'],
      [userSeed({ id: undefined, username: 'inv\u200Bisible', access_token: undefined }), 'invisible'],
    ]
    for (const [seed, message] of refused) {
      const write = store.write('seedUsers', { seeds: [...seeds, seed], nowSeconds: NOW })
      await expect(write).rejects.toThrow(message)
      expect(await store.read('countUsers')).toBe(0)
    }
    const made = await store.write('seedUsers', { seeds, nowSeconds: NOW })
    expect(made.users[599]).toEqual({ id: 600, username: 'user599' })
    expect(made.users[600]).toEqual({ id: 5_000, username: 'user600' })
    expect(made.users[1_199]).toEqual({ id: 5_599, username: 'user1199' })
    const found = await store.read('tokenByKeyHash', hashKey(SECRETS, 'Key1199x2'))
    expect(found).toMatchObject({ token: { name: 't2' }, user: { id: 5_599 } })
    expect(await store.read('revealKey', { tokenId: found?.token.id ?? 0, userId: 5_599 })).toBe('Key1199x2')

    const taken = [
      ...Array.from({ length: 30 }, (_, index) => seedWithoutKeys(`more${index}`)),
      { ...last, username: 'thief', tokens: [] },
    ]
    await expect(store.write('seedUsers', { seeds: taken, nowSeconds: NOW })).rejects.toThrow(
      'the access token of the user "thief" belongs to another user already',
    )
    const sameKey = [seedWithoutKeys('heir'), { ...last, username: 'second', access_token: undefined }]
    await expect(store.write('seedUsers', { seeds: sameKey, nowSeconds: NOW })).rejects.toThrow(
      'the key of the token "t0" belongs to the token',
    )
    expect(await store.read('countUsers')).toBe(1_200)
  })
})

function seedWithoutKeys(username: string): DeclaredUser {
  return userSeed({ id: undefined, username, access_token: undefined, tokens: [] })
}
