import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows, rowsWithAccount } from '../../../test/stores/engines.ts'
import { newToken, newUser } from '../../../test/stores/rows.ts'

describe.each(ENGINES)('the maximum number of tokens of a user, on $name', (engine) => {
  test('of several simultaneous token creations by a user who is one below max_user_tokens, only one succeeds', async () => {
    const { store, userId } = await rowsWithAccount(engine)
    const outcomes = await Promise.allSettled(
      ['a', 'b', 'c'].map((key) =>
        store.write('createUserToken', { token: newToken(userId, { name: key, key }), maxTokens: 2 }),
      ),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await store.read('listTokensWithKeys', { userId })).toHaveLength(2)
    await expect(
      store.write('createUserToken', { token: newToken(userId, { key: 'd' }), maxTokens: 2 }),
    ).rejects.toThrow('a user may have 2 tokens at most (max_user_tokens), and this one has 2')
  })

  test('max_user_tokens limits the tokens of each user separately', async () => {
    const { store } = await rowsWithAccount(engine)
    const { id } = await store.write('createUser', newUser({ username: 'bob' }))
    const made = await store.write('createUserToken', { token: newToken(id, { key: 'a' }), maxTokens: 1 })
    expect(made.user_id).toBe(id)
  })

  test('a token cannot be created for a user who does not exist', async () => {
    const { store } = await openedRows(engine)
    await expect(store.write('createUserToken', { token: newToken(7), maxTokens: 9 })).rejects.toThrow('gone')
  })
})

describe.each(ENGINES)('a status, on $name', (engine) => {
  test('a token with any status can be disabled by its user', async () => {
    const { store, userId } = await rowsWithAccount(engine)
    const { id } = await store.write('createToken', newToken(userId, { key: 'x', status: 3 }))
    const off = { tokenId: id, userId, status: 2, nowMs: 0 } as const
    expect(await store.write('enableOrDisableToken', off)).toMatchObject({
      token: { id, status: 2 },
      key: 'x',
    })
    expect(await store.read('tokenById', { tokenId: id })).toMatchObject({ status: 2 })
    expect(await store.write('enableOrDisableToken', { ...off, tokenId: 99 })).toBeNull()
    expect(await store.write('enableOrDisableToken', { ...off, userId: 99 })).toBeNull()
    expect(await store.read('tokenById', { tokenId: 99 })).toBeNull()
  })
})

describe.each(ENGINES)('lists, on $name', (engine) => {
  test('the list of users is sorted by id', async () => {
    const { store } = await rowsWithAccount(engine)
    await store.write('createUser', newUser({ username: 'aaa' }))
    expect((await store.read('listUsers')).map(({ username }) => username)).toEqual(['ada', 'aaa'])
  })

  test('revealing several keys returns the requested keys of one user, sorted by token id', async () => {
    const { store, userId, tokenId } = await rowsWithAccount(engine)
    const other = await store.write('createUser', newUser({ username: 'bob' }))
    const { id: foreign } = await store.write('createToken', newToken(other.id, { key: 'notThis' }))
    const second = await store.write('createToken', newToken(userId, { key: 'k2' }))
    await store.write('createToken', newToken(userId, { key: 'notAsked' }))
    const tokenIds = [second.id, 99, foreign, tokenId, tokenId]
    expect(await store.read('revealKeys', { userId, tokenIds })).toEqual([
      { tokenId, key: 'k1' },
      { tokenId: second.id, key: 'k2' },
    ])
  })
})

test.each(ENGINES)(
  'an access token replaces the earlier one, and only its hash is stored, on $name',
  async (engine) => {
    const { store, database } = await openedRows(engine)
    const before = await store.write('createUser', newUser({ username: 'bob', accessToken: 'the-first-one' }))
    await store.write('setAccessToken', { userId: before.id, accessToken: 'the-second-one' })
    // The first access token can be used by a third user now, the second cannot.
    await store.write('createUser', newUser({ username: 'cleo', accessToken: 'the-first-one' }))
    await expect(
      store.write('createUser', newUser({ username: 'dan', accessToken: 'the-second-one' })),
    ).rejects.toThrow('belongs to another user already')
    const [row] = await database.sql(`select * from users where id = ${before.id}`)
    expect(row?.['access_token_hash']).toMatch(/^[0-9a-f]{64}$/)
    expect(JSON.stringify(row)).not.toContain('the-second-one')
    expect(await store.write('setAccessToken', { userId: 99, accessToken: 'x' })).toBeNull()
  },
)
