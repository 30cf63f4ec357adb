import { describe, expect, test } from 'vitest'
import { ENGINES, rowsWithAccount } from '../../../test/stores/engines.ts'
import { newToken, newUser } from '../../../test/stores/rows.ts'

const NOW = 1_800_000_000
const PAGE = { within: undefined, offset: 0, limit: 10, nowMs: NOW * 1000 }

describe.each(ENGINES)('the tokens of all users, on $name', (engine) => {
  async function opened() {
    const { store, database, userId } = await rowsWithAccount(engine)
    await database.sql('DELETE FROM tokens')
    const bob = await store.write('createUser', newUser({ username: 'Bob', group: 'sales', role: 10 }))
    const create = (user: number, name: string, of: Partial<ReturnType<typeof newToken>> = {}) =>
      store.write('createToken', newToken(user, { name, key: `key-of-${name}`, ...of }))
    const found = async (search: object) => {
      const { total, ids } = await store.read('matchingTokens', { ...PAGE, ...search })
      const tokens = await store.read('tokensWithOwners', { tokenIds: ids })
      return [total, ...tokens.map(({ token, username }) => `${username} ${token.name}`)]
    }
    return { store, database, ada: userId, bob: bob.id, create, found }
  }

  test('a search finds tokens by a part of their name, by user, by group and by the end of the key, newest first', async () => {
    const { store, ada, bob, create, found } = await opened()
    await create(ada, 'Überall', { key: 'first-ZyX9' })
    await create(bob, 'laptop')
    await create(ada, 'shared', { group: 'sales' })
    const gone = await create(ada, 'gone')
    await store.write('deleteTokens', { userId: ada, tokenIds: [gone.id], nowSeconds: NOW })
    expect(await found({})).toEqual([3, 'ada shared', 'Bob laptop', 'ada Überall'])
    expect(await found({ name: 'ÜBER' })).toEqual([1, 'ada Überall'])
    expect(await found({ user: 'bo' })).toEqual([1, 'Bob laptop'])
    expect(await found({ user: String(ada), name: 'a' })).toEqual([2, 'ada shared', 'ada Überall'])
    expect(await found({ group: 'sales' })).toEqual([2, 'ada shared', 'Bob laptop'])
    expect(await found({ group: 'default' })).toEqual([1, 'ada Überall'])
    expect(await found({ end: 'ZyX9' })).toEqual([1, 'ada Überall'])
    expect(await found({ end: 'zyx9' })).toEqual([0])
    expect(await found({ within: { role: 10, self: 0 } })).toEqual([2, 'ada shared', 'ada Überall'])
    expect(await found({ within: { role: 1, self: bob } })).toEqual([1, 'Bob laptop'])
    const byName = { order: { by: 'name', isAscending: false }, limit: 2, offset: 1 }
    expect((await found(byName))[0]).toBe(3)
    expect(await found({ order: { by: 'name', isAscending: true }, limit: 1 })).toEqual([3, 'Bob laptop'])
    expect(await found({ name: 'a', limit: 1, offset: 1 })).toEqual([3, 'Bob laptop'])
  })

  test('a search by status finds what the lists show with this status', async () => {
    const { store, ada, create, found } = await opened()
    await create(ada, 'works')
    await create(ada, 'unlimited', { unlimited_quota: true, remain_quota: -5 })
    await create(ada, 'expired', { expired_time: NOW, remain_quota: 0 })
    await create(ada, 'expires', { expired_time: NOW + 1 })
    await create(ada, 'empty', { remain_quota: 0 })
    const off = await create(ada, 'off', { expired_time: 1, remain_quota: 0 })
    const change = { userId: ada, tokenId: off.id, status: 2, nowMs: 0 } as const
    await store.write('enableOrDisableToken', change)
    expect(await found({ status: 1 })).toEqual([3, 'ada expires', 'ada unlimited', 'ada works'])
    expect(await found({ status: 2 })).toEqual([1, 'ada off'])
    expect(await found({ status: 3 })).toEqual([1, 'ada expired'])
    expect(await found({ status: 4 })).toEqual([1, 'ada empty'])
  })

  test('keys that an earlier version stored are found by their end once it has been computed, also beside a damaged row', async () => {
    const { store, database, ada, create, found } = await opened()
    for (const name of ['one', 'two', 'damaged']) await create(ada, name, { key: `${name}-ZyX9` })
    const digest = 'd'.repeat(64)
    await create(ada, 'digest', { key: digest, key_form: 'digest' })
    await database.sql("UPDATE tokens SET key_end = ''")
    await database.sql("UPDATE tokens SET key_cipher = 'v1.nonsense.x' WHERE name = 'damaged'")
    expect(await found({ end: 'ZyX9' })).toEqual([0])
    expect(await store.write('tagKeyEnds', {})).toBe(false)
    expect(await found({ end: 'ZyX9' })).toEqual([2, 'ada two', 'ada one'])
    const [row] = await database.sql("SELECT key_end FROM tokens WHERE name = 'digest'")
    expect(row).toEqual({ key_end: '' })
    await store.write('storeImportedKey', { digest, key: 'imported-AbC1', form: 'whole' })
    expect(await found({ end: 'AbC1' })).toEqual([1, 'ada digest'])
    const rotated = await store.read('matchingTokens', { ...PAGE, end: 'AbC1' })
    await store.write('rotateToken', { tokenId: rotated.ids[0] ?? 0, userId: ada, key: 'fresh-DeF2' })
    expect(await found({ end: 'AbC1' })).toEqual([0])
    expect(await found({ end: 'DeF2' })).toEqual([1, 'ada digest'])
  })
})
