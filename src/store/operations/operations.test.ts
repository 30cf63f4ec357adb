import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows, rowsWithAccount } from '../../../test/stores/engines.ts'
import { newToken, newUser, SECRETS } from '../../../test/stores/rows.ts'
import { hashKey } from '../secrets.ts'

const NO_TERMS = {
  budget: undefined,
  rateLimit: { requests: 0, tokens: 0, parallel: 0, windowMs: 60_000 },
}

describe.each(ENGINES)('a token, on $name', (engine) => {
  test('a token is found by the hash of its key, with its user', async () => {
    const { store, userId, tokenId } = await rowsWithAccount(engine)
    const found = await store.read('tokenByKeyHash', hashKey(SECRETS, 'k1'))
    expect(found?.token).toEqual({
      id: tokenId,
      user_id: userId,
      name: 'main',
      status: 1,
      created_time: 1_760_000_000,
      accessed_time: 0,
      expired_time: -1,
      remain_quota: 500_000,
      unlimited_quota: false,
      used_quota: 0,
      model_limits_enabled: false,
      model_limits: '',
      allow_ips: null,
      group: '',
      vendor_routes: '',
      guards: [],
      toolsets: [],
      team_group: '',
      key_form: 'plain',
      deleted_time: null,
      content_log_what: '',
      content_log_sample: null,
      content_log_keep: null,
      ...NO_TERMS,
      operator_terms: {},
    })
    expect(found?.user).toEqual({
      id: userId,
      username: 'ada',
      role: 1,
      status: 1,
      group: 'default',
      quota: 1_000_000,
      unlimited_quota: false,
      used_quota: 0,
      request_count: 0,
      content_log_what: '',
      content_log_sample: null,
      content_log_keep: null,
      ...NO_TERMS,
    })
    expect(await store.read('tokenByKeyHash', hashKey(SECRETS, 'k2'))).toBeNull()
  })

  test('a token keeps the values that it was created with', async () => {
    const { store, userId } = await rowsWithAccount(engine)
    const made = {
      name: 'second',
      status: 2,
      expired_time: 1_900_000_000,
      remain_quota: 5e14,
      unlimited_quota: true,
      model_limits_enabled: true,
      model_limits: 'a,b',
      allow_ips: '10.0.0.0/8',
      group: 'vip',
      vendor_routes: '{"x":"vip"}',
    } as const
    const token = await store.write('createToken', newToken(userId, { ...made, key: 'k2' }))
    expect(token).toMatchObject(made)
    expect(await store.read('listTokensWithKeys', { userId })).toEqual([
      { token, key: 'k2' },
      { token: expect.objectContaining({ name: 'main' }) as unknown, key: 'k1' },
    ])
  })

  test('a deleted token is still found by its key, with the time of deletion, but no longer listed or revealed', async () => {
    const { store, database, userId, tokenId } = await rowsWithAccount(engine)
    await database.sql('UPDATE tokens SET deleted_time = 1760000005')
    expect((await store.read('tokenByKeyHash', hashKey(SECRETS, 'k1')))?.token.deleted_time).toBe(
      1_760_000_005,
    )
    expect(await store.read('listTokensWithKeys', { userId })).toEqual([])
    expect(await store.read('revealKey', { tokenId, userId })).toBeNull()
    const change = { tokenId, status: 2, onlyFrom: 1 } as const
    expect(await store.write('setTokenStatus', change)).toBe(false)
    // The key of a deleted token cannot be used again.
    await expect(store.write('createToken', newToken(userId, { name: 'again' }))).rejects.toThrow(
      /belongs to the deleted token \d+ of the user "ada" already/,
    )
  })

  test('the text of a key is revealed only to its user', async () => {
    const { store, userId, tokenId } = await rowsWithAccount(engine)
    expect(await store.read('revealKey', { tokenId, userId })).toBe('k1')
    expect(await store.read('revealKey', { tokenId, userId: userId + 1 })).toBeNull()
  })

  test('an encrypted token key that was moved to the row of another token cannot be decrypted', async () => {
    const { store, database, userId, tokenId } = await rowsWithAccount(engine)
    const other = await store.write('createToken', newToken(userId, { name: 'other', key: 'k2' }))
    await database.sql(
      `UPDATE tokens SET key_cipher = (SELECT key_cipher FROM tokens WHERE id = ${tokenId}) WHERE id = ${other.id}`,
    )
    await expect(store.read('revealKey', { tokenId: other.id, userId })).rejects.toThrow()
  })

  test("a change of a token's status is refused if its present status is not the expected one", async () => {
    const { store, userId, tokenId } = await rowsWithAccount(engine)
    expect(await store.write('setTokenStatus', { tokenId, status: 4, onlyFrom: 1 })).toBe(true)
    expect(await store.write('setTokenStatus', { tokenId, status: 3, onlyFrom: 1 })).toBe(false)
    expect((await store.read('listTokensWithKeys', { userId }))[0]?.token.status).toBe(4)
  })
})

describe.each(ENGINES)('a user, on $name', (engine) => {
  test('a user is found by name', async () => {
    const { store, userId } = await rowsWithAccount(engine)
    expect((await store.read('userByName', 'ada'))?.id).toBe(userId)
    expect(await store.read('userByName', 'Ada')).toBeNull()
    expect(await store.read('countUsers')).toBe(1)
  })

  test('a user can be created with a given id, and is refused if the id, name or access token is in use', async () => {
    const { store } = await openedRows(engine)
    const bob = await store.write(
      'createUser',
      newUser({ id: 41, username: 'bob', accessToken: 'secret-of-bob' }),
    )
    expect(bob.id).toBe(41)
    expect((await store.write('createUser', newUser())).id).toBe(42)
    const refused = (of: Parameters<typeof newUser>[0]) =>
      expect(store.write('createUser', newUser(of))).rejects
    await refused({ username: 'bob' }).toThrow('there is a user "bob" already')
    await refused({ id: 41, username: 'eve' }).toThrow('the id 41 belongs to the user "bob" already')
    await refused({ username: 'eve', accessToken: 'secret-of-bob' }).toThrow(
      /the access token of the user "eve"/,
    )
    expect(await store.read('countUsers')).toBe(2)
  })
})
