import { describe, expect, test } from 'vitest'
import { ENGINES, rowsWithAccount } from '../../../test/store-engines.ts'
import { SECRETS } from '../../../test/store-rows.ts'
import type { Rows } from '../store.ts'
import { hashAccessToken, hashSession } from '../secrets.ts'

const session = (name: string): string => name.padEnd(43, '-')

const begin = (
  store: Rows,
  userId: number,
  name: string,
  of: { createdTime?: number; passwordHash?: string; newHash?: string } = {},
) =>
  store.write('beginSession', {
    userId,
    cookieValue: session(name),
    passwordHash: 'hash',
    createdTime: 1000,
    expiresTime: (of.createdTime ?? 1000) + 100,
    ...of,
  })

const whose = (store: Rows, name: string, nowSeconds = 1000) =>
  store.read('userBySession', { sessionHash: hashSession(SECRETS, session(name)), nowSeconds })

describe.each(ENGINES)('a session, on $name', (engine) => {
  async function opened() {
    const rows = await rowsWithAccount(engine)
    await rows.store.write('changeUser', { userId: rows.userId, fields: { passwordHash: 'hash' } })
    return rows
  }

  test('is its user until it expires, and only its HMAC is kept', async () => {
    const { store, database, userId } = await opened()
    expect(await begin(store, userId, 'a')).toBe(true)
    expect(await whose(store, 'a', 1099)).toMatchObject({ id: userId, username: 'ada' })
    expect(await whose(store, 'a', 1100)).toBeNull()
    expect(await whose(store, 'b')).toBeNull()
    const rows = await database.sql('select * from sessions')
    expect(rows).toEqual([
      {
        id_hash: hashSession(SECRETS, session('a')),
        user_id: userId,
        created_time: 1000,
        expires_time: 1100,
      },
    ])
  })

  test('begins for a user who is there, enabled, and has the password that was looked at', async () => {
    const { store, userId } = await opened()
    expect(await begin(store, userId, 'a', { passwordHash: 'other' })).toBe(false)
    expect(await begin(store, 99, 'a')).toBe(false)
    await store.write('changeUser', { userId, fields: { status: 2 } })
    expect(await begin(store, userId, 'a')).toBe(false)
    expect(await whose(store, 'a')).toBeNull()
  })

  test('may replace the hash of the password, which keeps other sessions and the access token', async () => {
    const { store, userId } = await opened()
    await store.write('changeUser', { userId, fields: { passwordHash: '$2a$10$x' } })
    await store.write('setAccessToken', { userId, accessToken: 'secret' })
    expect(await store.read('hasBcryptPasswords')).toBe(true)
    await begin(store, userId, 'a', { passwordHash: '$2a$10$x' })
    expect(await begin(store, userId, 'b', { passwordHash: '$2a$10$x', newHash: '$argon2id$' })).toBe(true)
    expect(await store.read('hasBcryptPasswords')).toBe(false)
    expect(await begin(store, userId, 'c', { passwordHash: '$argon2id$' })).toBe(true)
    for (const name of ['a', 'b', 'c']) expect(await whose(store, name)).not.toBeNull()
    const hash = hashAccessToken(SECRETS, 'secret')
    expect(await store.read('userByAccessToken', hash)).toMatchObject({ id: userId })
  })

  test('ends alone', async () => {
    const { store, userId } = await opened()
    await begin(store, userId, 'a')
    await begin(store, userId, 'b')
    expect(await store.write('endSession', { session: session('a') })).toBe(true)
    expect(await store.write('endSession', { session: session('a') })).toBe(false)
    expect([await whose(store, 'a'), await whose(store, 'b')]).toEqual([
      null,
      expect.objectContaining({ id: userId }),
    ])
  })

  test('ends with the password, and with the user', async () => {
    const { store, userId } = await opened()
    await begin(store, userId, 'a')
    await store.write('changeUser', { userId, fields: { passwordHash: 'hash' } })
    expect(await whose(store, 'a')).toBeNull()
    await begin(store, userId, 'a')
    await store.write('deleteUser', { userId, deletedTime: 1 })
    expect(await whose(store, 'a')).toBeNull()
  })

  test('tells of a disabled user, and does not outlive that', async () => {
    const { store, userId } = await opened()
    await begin(store, userId, 'a')
    await store.write('changeUser', { userId, fields: { status: 2 } })
    expect(await whose(store, 'a')).toMatchObject({ status: 2 })
    await store.write('changeUser', { userId, fields: { status: 1 } })
    expect(await whose(store, 'a')).toBeNull()
  })

  test('that a declared status enables its user again does not outlive that either', async () => {
    const { store, userId } = await opened()
    await begin(store, userId, 'a')
    await store.write('changeUser', { userId, fields: { status: 2 } })
    const seed = { id: undefined, username: 'ada', role: 1, status: 1, group: 'default', quota: 0 } as const
    const seeds = [{ ...seed, accessToken: undefined, tokens: [] }]
    await store.write('seedUsers', { seeds, nowSeconds: 1000 })
    expect(await store.read('userById', userId)).toMatchObject({ status: 1 })
    expect(await whose(store, 'a')).toBeNull()
  })

  test('of anybody that has expired is removed when one begins', async () => {
    const { store, database, userId } = await opened()
    await begin(store, userId, 'a')
    await begin(store, userId, 'b', { createdTime: 1050 })
    await begin(store, userId, 'c', { createdTime: 1100 })
    const rows = await database.sql('select created_time from sessions order by created_time')
    expect(rows.map((row) => row['created_time'])).toEqual([1050, 1100])
  })
})
