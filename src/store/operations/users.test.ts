import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows, rowsWithAccount } from '../../../test/stores/engines.ts'
import { newToken, newUser } from '../../../test/stores/rows.ts'
import type { QuotaChange } from './users.ts'

const MOST = 9_000_000_000_000_000

describe.each(ENGINES)('a change of a quota, on $name', (engine) => {
  test.each<[QuotaChange, number]>([
    [{ mode: 'add', value: 8_000_000_000_000_001, maxQuota: MOST }, 8_000_000_001_000_001],
    [{ mode: 'add', value: 100, maxQuota: 1_000_100 }, 1_000_100],
    [{ mode: 'subtract', value: 1_000_000, maxQuota: MOST }, 0],
    [{ mode: 'override', value: 7, maxQuota: MOST }, 7],
    [{ mode: 'override', value: 0, maxQuota: MOST }, 0],
  ])(
    "the change %j of a user's quota of 1000000 gives %i, and returns the difference",
    async (quota, after) => {
      const { store, userId } = await rowsWithAccount(engine)
      const changed = await store.write('changeUser', { userId, quota })
      expect(changed).toMatchObject({ user: { id: userId, quota: after }, quotaMoved: after - 1_000_000 })
      expect((await store.read('userById', userId))?.quota).toBe(after)
    },
  )

  test.each<[QuotaChange, string]>([
    [
      { mode: 'add', value: 101, maxQuota: 1_000_100 },
      'no user may have more than 1000100 quota units: this one has 1000000, and 101 more are too many',
    ],
    [
      { mode: 'subtract', value: 1_000_001, maxQuota: MOST },
      'this user has 1000000 quota units, and 1000001 are more',
    ],
  ])(
    "the change %j of a user's quota is refused, and no other field of the same change is written",
    async (quota, sentence) => {
      const { store, userId } = await rowsWithAccount(engine)
      const change = { userId, quota, fields: { remark: 'x' } }
      await expect(store.write('changeUser', change)).rejects.toThrow(sentence)
      expect(await store.read('managedUser', { userId })).toMatchObject({ quota: 1_000_000, remark: '' })
    },
  )
})

describe.each(ENGINES)('a change of a user, on $name', (engine) => {
  test('a change of a user writes only the given fields', async () => {
    const { store, userId } = await rowsWithAccount(engine)
    const before = await store.read('managedUser', { userId })
    const all = {
      username: 'ada2',
      display_name: 'Ada',
      email: 'a@b.example',
      role: 10,
      status: 2,
      group: 'vip',
      remark: 'pays late',
    } as const
    const changed = await store.write('changeUser', { userId, fields: all })
    expect(changed).toEqual({ user: { ...before, ...all }, quotaMoved: 0 })
    expect(await store.write('changeUser', { userId, fields: { email: '' } })).toMatchObject({
      user: { ...before, ...all, email: '' },
    })
    expect(await store.write('changeUser', { userId })).toMatchObject({ user: { email: '' } })
  })

  test('changing a user who does not exist returns null', async () => {
    const { store } = await rowsWithAccount(engine)
    expect(await store.write('changeUser', { userId: 99, fields: { status: 2 } })).toBeNull()
  })

  test('renaming a user is refused if another user has the name, but not if the user has it or a deleted one had it', async () => {
    const { store, userId } = await rowsWithAccount(engine)
    const bob = await store.write('createUser', newUser({ username: 'bob' }))
    const rename = (username: string) => store.write('changeUser', { userId, fields: { username } })
    await expect(rename('bob')).rejects.toThrow('there is a user "bob" already')
    expect(await rename('ada')).toMatchObject({ user: { username: 'ada' } })
    await store.write('deleteUser', { userId: bob.id, deleted_time: 1 })
    expect(await rename('bob')).toMatchObject({ user: { username: 'bob' } })
  })

  test('two users of the same name that are deleted one after the other both stay listed as deleted with that name', async () => {
    const { store, userId } = await rowsWithAccount(engine)
    await store.write('changeUser', { userId, fields: { username: 'bob (deleted 2)' } })
    const bob = await store.write('createUser', newUser({ username: 'bob' }))
    expect(bob.id).toBe(2)
    await store.write('deleteUser', { userId: bob.id, deleted_time: 1 })
    const again = await store.write('createUser', newUser({ username: 'bob' }))
    await store.write('deleteUser', { userId: again.id, deleted_time: 2 })
    const { users } = await store.read('takenIdentifiers')
    expect(users.filter(({ isDeleted }) => isDeleted).map(({ id, username }) => [id, username])).toEqual([
      [2, 'bob'],
      [3, 'bob'],
    ])
  })

  test("changing or deleting a user is refused unless the user's role is below `roleBelow`", async () => {
    const { store } = await rowsWithAccount(engine)
    const { id: userId } = await store.write('createUser', newUser({ username: 'bob', role: 10 }))
    const change = (roleBelow: number) =>
      store.write('changeUser', { userId, fields: { remark: 'x' }, roleBelow })
    await expect(change(10)).rejects.toMatchObject({ code: 'role_too_low' })
    expect(await change(100)).toMatchObject({ user: { remark: 'x' } })
    await expect(store.write('deleteUser', { userId, deleted_time: 1, roleBelow: 10 })).rejects.toMatchObject(
      {
        code: 'role_too_low',
      },
    )
  })

  test('a change of a user is refused if the password is no longer the one that was checked', async () => {
    const { store, userId } = await rowsWithAccount(engine)
    await store.write('changeUser', { userId, fields: { passwordHash: 'one' } })
    const change = (passwordWas: string) =>
      store.write('changeUser', { userId, fields: { passwordHash: 'two' }, passwordWas })
    await expect(change('zero')).rejects.toThrow('the password was changed meanwhile')
    await change('one')
    expect(await store.read('credentials', { username: 'ada' })).toMatchObject({ passwordHash: 'two' })
  })

  test('the last enabled root user cannot be disabled, demoted or deleted', async () => {
    const { store } = await rowsWithAccount(engine)
    const roots: number[] = []
    for (const username of ['r1', 'r2', 'r3']) {
      roots.push((await store.write('createUser', newUser({ username, role: 100 }))).id)
    }
    const [first = 0, second = 0, third = 0] = roots
    await store.write('changeUser', { userId: first, fields: { status: 2 } })
    await store.write('changeUser', { userId: second, fields: { role: 10 } })
    const last = '"r3" is the last root user: it cannot be disabled, demoted or deleted'
    const changeLast = (fields: object) => store.write('changeUser', { userId: third, fields })
    await expect(changeLast({ status: 2 })).rejects.toThrow(last)
    await expect(changeLast({ role: 1 })).rejects.toThrow(last)
    await expect(store.write('deleteUser', { userId: third, deleted_time: 1 })).rejects.toThrow(last)
    await changeLast({ display_name: 'x' })
    await store.write('changeUser', { userId: first, fields: { status: 1 } })
    expect(await store.write('deleteUser', { userId: third, deleted_time: 1 })).toBe(true)
  })
})

describe.each(ENGINES)('a deleted user, on $name', (engine) => {
  test('a deleted user is no longer found, and its tokens are deleted; the database rows stay', async () => {
    const { store, database, userId, tokenId } = await rowsWithAccount(engine)
    await store.write('createToken', newToken(userId, { key: 'k2', name: 'second' }))
    await store.write('changeUser', { userId, fields: { passwordHash: 'hash' } })
    await store.write('setAccessToken', { userId, accessToken: 'secret' })
    expect(await store.write('deleteUser', { userId, deleted_time: 1_760_000_500 })).toBe(true)
    expect(await store.write('deleteUser', { userId, deleted_time: 1_760_000_600 })).toBe(false)
    expect(await store.read('managedUser', { userId })).toBeNull()
    expect(await store.read('credentials', { username: 'ada' })).toBeNull()
    expect(await store.read('listTokensWithKeys', { userId })).toEqual([])
    expect(await store.read('tokenById', { tokenId })).toBeNull()
    const [row] = await database.sql(`select * from users where id = ${userId}`)
    expect(row).toMatchObject({ deleted_time: 1_760_000_500, password_hash: null, access_token_hash: null })
    const tokens = await database.sql(`select deleted_time from tokens where user_id = ${userId}`)
    expect(tokens).toEqual([{ deleted_time: 1_760_000_500 }, { deleted_time: 1_760_000_500 }])
  })

  test('a deleted user that gateway.yaml declares is not created again, and neither is a new token of that user', async () => {
    const { store, userId } = await rowsWithAccount(engine)
    await store.write('deleteUser', { userId, deleted_time: 1 })
    const {
      created_time: _,
      user_id: __,
      deleted_time: ___,
      ...token
    } = { ...newToken(userId), deleted_time: 0 }
    const seed = {
      id: undefined,
      username: 'ada',
      role: 1,
      status: undefined,
      group: 'default',
      quota: 0,
      accessToken: undefined,
      tokens: [{ ...token, name: 'new', key: 'new', status: undefined }],
    } as const
    expect(await store.write('seedUsers', { seeds: [seed], nowSeconds: 5 })).toEqual({
      users: [],
      tokens: [],
    })
    expect(await store.read('tokenByKeyHash', 'x')).toBeNull()
  })
})

describe.each(ENGINES)('pages of users, on $name', (engine) => {
  test('pages of users list the newest first, and can be searched by part of a name or e-mail address, by id and by group', async () => {
    const { store } = await openedRows(engine)
    const make = (id: number, username: string, group: string, display_name: string) =>
      store.write('createUser', newUser({ id, username, group, display_name }))
    await make(1, 'ada', 'default', 'Ada Lovelace')
    await make(2, 'Émile', 'vip', '50% off')
    await make(12, 'bob', 'vip', 'Bob_')
    await make(30, 'gone', 'vip', 'gone')
    await store.write('changeUser', { userId: 12, fields: { email: 'Bob@2.example' } })
    await store.write('deleteUser', { userId: 30, deleted_time: 1 })
    const found = async (keyword: string, group?: string, offset = 0, limit = 10) => {
      const { users, total } = await store.read('pageOfUsers', { keyword, group, offset, limit })
      return [users.map(({ id }) => id), total]
    }
    expect(await found('')).toEqual([[12, 2, 1], 3])
    expect(await found('', undefined, 1, 1)).toEqual([[2], 3])
    expect(await found('', undefined, 3, 1)).toEqual([[], 3])
    expect(await found('', 'vip')).toEqual([[12, 2], 2])
    expect(await found('LOVE')).toEqual([[1], 1])
    expect(await found('éMILE')).toEqual([[2], 1])
    expect(await found('%')).toEqual([[2], 1])
    expect(await found('_')).toEqual([[12], 1])
    // The id 2, and the 2 in an address; not the id 12.
    expect(await found('2')).toEqual([[12, 2], 2])
    expect(await found('12')).toEqual([[12], 1])
    expect(await found('ada', 'vip')).toEqual([[], 0])
  })
})

describe.each(ENGINES)('a name, on $name', (engine) => {
  const named = (username: string) => ({ ...newUser(), username, accessToken: null })

  test.each([
    ['Ann', 'ann'],
    ['ann', 'ANN'],
    ['ÖZGE', 'özge'],
    ['Аня', 'аНЯ'],
    ['Mike_100%!', 'mike_100%!'],
    ['kiss', 'KISS'],
  ])('the user name %j is refused if another user is named %j', async (name, theirs) => {
    const { store, userId } = await rowsWithAccount(engine)
    const twin = await store.write('createUser', named(theirs))
    const sentence = `there is a user "${theirs}" already, and "${name}" differs from it in case alone`
    await expect(store.write('createUser', named(name))).rejects.toThrow(sentence)
    await expect(store.write('changeUser', { userId, fields: { username: name } })).rejects.toThrow(sentence)
    const renamed = await store.write('changeUser', { userId: twin.id, fields: { username: name } })
    expect(renamed?.user.username).toBe(name)
  })

  test.each([
    ['mikex100', 'mike_100'],
    ['ann', 'ann2'],
    ['ann%', 'anna'],
  ])('the user name %j is accepted if another user is named %j', async (name, theirs) => {
    const { store } = await rowsWithAccount(engine)
    await store.write('createUser', named(theirs))
    expect((await store.write('createUser', named(name))).username).toBe(name)
  })

  test.each([
    ['ａｎｎ', 'ann'],
    ['می\u200Cخواهم', 'میخواهم'],
  ])(
    'the user name %j is refused if another user is named %j, which is spelled differently',
    async (name, theirs) => {
      const { store, userId } = await rowsWithAccount(engine)
      await store.write('createUser', named(theirs))
      const sentence = `there is a user "${theirs}" already, and "${name}" differs from it in forms of letters alone`
      await expect(store.write('createUser', named(name))).rejects.toThrow(sentence)
      await expect(store.write('changeUser', { userId, fields: { username: name } })).rejects.toThrow(
        sentence,
      )
    },
  )

  test('of equal user names that are requested at the same time at several nodes, only one is accepted', async () => {
    const database = await engine.prepared()
    const nodes = await Promise.all(
      Array.from({ length: engine.name === 'SQLite' ? 1 : 3 }, () => database.open()),
    )
    const ids: number[] = []
    for (const name of ['one', 'two', 'three', 'four', 'five', 'six'])
      ids.push((await nodes[0]?.write('createUser', named(name)))?.id ?? 0)
    const names = ['eve', 'Eve', 'EVE', 'ｅve', 'ｅｖｅ', 'evE']
    const made = await Promise.allSettled(
      names.map(async (username, i) => {
        await nodes[i % nodes.length]?.write('changeUser', { userId: ids[i] ?? 0, fields: { username } })
      }),
    )
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const one of made)
      if (one.status === 'rejected') expect(String(one.reason)).toContain('there is a user "')
    for (const node of nodes) await node.close()
  })

  test('the name of a deleted user can be used again in every letter case', async () => {
    const { store } = await rowsWithAccount(engine)
    const { id } = await store.write('createUser', named('Gone'))
    await store.write('deleteUser', { userId: id, deleted_time: 1 })
    expect((await store.write('createUser', named('gone'))).username).toBe('gone')
  })
})

describe.each(ENGINES)('an access token, on $name', (engine) => {
  const user = async (passwordHash: string | undefined) => {
    const { store } = await rowsWithAccount(engine)
    const { id } = await store.write('createUser', {
      ...newUser(),
      username: 'eve',
      accessToken: null,
      passwordHash,
    })
    await store.write('setAccessToken', { userId: id, accessToken: 'of eve' })
    return {
      id,
      hash: async () =>
        (await store.read('takenIdentifiers')).users.find((one) => one.id === id)?.accessTokenHash,
      store,
    }
  }

  test("replacing a user's password deletes the user's access token", async () => {
    const { id, hash, store } = await user('one')
    await store.write('changeUser', { userId: id, fields: { display_name: 'Eve' } })
    expect(await hash()).not.toBeNull()
    await store.write('changeUser', { userId: id, fields: { passwordHash: 'two' } })
    expect(await hash()).toBeNull()
  })

  test("a new password keeps the user's access token if that is requested, or if it is the first password", async () => {
    const kept = await user('one')
    await kept.store.write('changeUser', {
      userId: kept.id,
      fields: { passwordHash: 'two' },
      keepAccessTokens: true,
    })
    expect(await kept.hash()).not.toBeNull()
    const first = await user(undefined)
    await first.store.write('changeUser', { userId: first.id, fields: { passwordHash: 'two' } })
    expect(await first.hash()).not.toBeNull()
  })
})
