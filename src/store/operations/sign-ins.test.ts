import { describe, expect, test } from 'vitest'
import { ENGINES, rowsWithAccount } from '../../../test/stores/engines.ts'
import { newUser, SECRETS } from '../../../test/stores/rows.ts'
import type { RowStore } from '../store.ts'
import { hashAccessToken, hashSession } from '../secrets.ts'
import type { SignInProof, Identity } from './sign-ins.ts'

const session = (name: string): string => name.padEnd(43, '-')

const begin = (
  store: RowStore,
  userId: number,
  name: string,
  of: { created_time?: number; proof?: SignInProof } = {},
) =>
  store.write('beginSession', {
    userId,
    cookieValue: session(name),
    proof: of.proof ?? { kind: 'password', passwordHash: 'hash' },
    created_time: of.created_time ?? 1000,
    expiresTime: (of.created_time ?? 1000) + 100,
    address: '192.0.2.1',
    userAgent: 'test',
  })

const hashOf = (name: string): string => hashSession(SECRETS, session(name))

const whose = async (store: RowStore, name: string, nowSeconds = 1000) =>
  (await store.read('liveSession', { sessionHash: hashOf(name), nowSeconds }))?.user ?? null

const password = (passwordHash: string, newHash?: string): SignInProof => ({
  kind: 'password',
  passwordHash,
  newHash,
})

describe.each(ENGINES)('a session, on $name', (engine) => {
  async function opened() {
    const rows = await rowsWithAccount(engine)
    await rows.store.write('changeUser', { userId: rows.userId, fields: { passwordHash: 'hash' } })
    return rows
  }

  test('a user has at most 100 console sessions: a further sign-in ends the one that was used longest ago', async () => {
    const { store, userId } = await opened()
    const other = await store.write('createUser', newUser({ username: 'bob', passwordHash: 'hash' }))
    await begin(store, other.id, 'other')
    const names = Array.from({ length: 102 }, (_, n) => `s${n}`)
    // Two begin in each second, so that none of them expires meanwhile.
    for (const [n, name] of names.entries()) {
      await begin(store, userId, name, { created_time: 1000 + Math.floor(n / 2) })
      if (n === 9) await store.write('recordSessionUse', { sessionHash: hashOf('s0'), nowSeconds: 1060 })
    }
    const nowSeconds = 1000
    const listed = await store.read('sessionsOf', { userId, nowSeconds })
    const left = ['s0', ...names.slice(3)]
    expect(listed.map(({ idHash }) => idHash).toSorted()).toEqual(left.map(hashOf).toSorted())
    expect(await whose(store, 's1')).toBeNull()
    expect(await whose(store, 's101')).toMatchObject({ id: userId })
    expect(await whose(store, 'other')).toMatchObject({ id: other.id })
  })

  test('a console session identifies its user until it expires, and only an HMAC of its id is stored', async () => {
    const { store, database, userId } = await opened()
    expect(await begin(store, userId, 'a')).toBe(true)
    expect(await whose(store, 'a', 1099)).toMatchObject({ id: userId, username: 'ada' })
    expect(await whose(store, 'a', 1100)).toBeNull()
    expect(await whose(store, 'b')).toBeNull()
    const rows = await database.sql('select * from sessions')
    expect(rows).toEqual([
      {
        id_hash: hashOf('a'),
        user_id: userId,
        created_time: 1000,
        expires_time: 1100,
        last_used: 1000,
        address: '192.0.2.1',
        user_agent: 'test',
        access_token_hash: null,
        logout_cipher: null,
      },
    ])
  })

  test('a console session begins only for a user who exists, is enabled, and still has the checked password', async () => {
    const { store, userId } = await opened()
    expect(await begin(store, userId, 'a', { proof: password('other') })).toBe(false)
    expect(await begin(store, 99, 'a')).toBe(false)
    await store.write('changeUser', { userId, fields: { status: 2 } })
    expect(await begin(store, userId, 'a')).toBe(false)
    expect(await whose(store, 'a')).toBeNull()
  })

  test('a sign-in may replace the bcrypt hash of the password, and other sessions and the access token stay valid', async () => {
    const { store, userId } = await opened()
    await store.write('changeUser', { userId, fields: { passwordHash: '$2a$10$x' } })
    await store.write('setAccessToken', { userId, accessToken: 'secret' })
    expect(await store.read('hasBcryptPasswords')).toBe(true)
    await begin(store, userId, 'a', { proof: password('$2a$10$x') })
    expect(await begin(store, userId, 'b', { proof: password('$2a$10$x', '$argon2id$') })).toBe(true)
    expect(await store.read('hasBcryptPasswords')).toBe(false)
    expect(await begin(store, userId, 'c', { proof: password('$argon2id$') })).toBe(true)
    for (const name of ['a', 'b', 'c']) expect(await whose(store, name)).not.toBeNull()
    const hash = hashAccessToken(SECRETS, 'secret')
    expect(await store.read('userByAccessToken', hash)).toMatchObject({ id: userId })
  })

  test('ending a console session leaves the other sessions of its user', async () => {
    const { store, userId } = await opened()
    await begin(store, userId, 'a')
    await begin(store, userId, 'b')
    const end = () => store.write('endSession', { cookieValue: session('a') })
    expect([await end(), await end()]).toEqual([{ logoutUrl: null }, null])
    expect([await whose(store, 'a'), await whose(store, 'b')]).toEqual([
      null,
      expect.objectContaining({ id: userId }),
    ])
  })

  test("a console session ends when its user's password changes, and when the user is deleted", async () => {
    const { store, userId } = await opened()
    await begin(store, userId, 'a')
    await store.write('changeUser', { userId, fields: { passwordHash: 'hash' } })
    expect(await whose(store, 'a')).toBeNull()
    await begin(store, userId, 'a')
    await store.write('deleteUser', { userId, deleted_time: 1 })
    expect(await whose(store, 'a')).toBeNull()
  })

  test('a console session of a disabled user is reported as disabled once, and has then ended', async () => {
    const { store, userId } = await opened()
    await begin(store, userId, 'a')
    await store.write('changeUser', { userId, fields: { status: 2 } })
    expect(await whose(store, 'a')).toMatchObject({ status: 2 })
    await store.write('changeUser', { userId, fields: { status: 1 } })
    expect(await whose(store, 'a')).toBeNull()
  })

  test('a console session that ended with its disabled user does not return when gateway.yaml enables the user again', async () => {
    const { store, userId } = await opened()
    await begin(store, userId, 'a')
    await store.write('changeUser', { userId, fields: { status: 2 } })
    const seed = { id: undefined, username: 'ada', role: 1, status: 1, group: 'default', quota: 0 } as const
    const seeds = [{ ...seed, accessToken: undefined, tokens: [] }]
    await store.write('seedUsers', { seeds, nowSeconds: 1000 })
    expect(await store.read('userById', userId)).toMatchObject({ status: 1 })
    expect(await whose(store, 'a')).toBeNull()
  })

  test('expired console sessions of all users are removed when a new session begins', async () => {
    const { store, database, userId } = await opened()
    await begin(store, userId, 'a')
    await begin(store, userId, 'b', { created_time: 1050 })
    await begin(store, userId, 'c', { created_time: 1100 })
    const rows = await database.sql('select created_time from sessions order by created_time')
    expect(rows.map((row) => row['created_time'])).toEqual([1050, 1100])
  })

  test("a console session begins only with the user's present access token, and ends when that token is replaced", async () => {
    const { store, userId } = await opened()
    const proof = { kind: 'access token', accessToken: 'secret' } as const
    expect(await begin(store, userId, 'a', { proof })).toBe(false)
    await store.write('setAccessToken', { userId, accessToken: 'secret' })
    expect(await begin(store, userId, 'a', { proof })).toBe(true)
    await begin(store, userId, 'b')
    const names = async () =>
      (await store.read('sessionsOf', { userId, nowSeconds: 1000 })).map(({ idHash }) => idHash)
    expect(new Set(await names())).toEqual(new Set([hashOf('a'), hashOf('b')]))
    await store.write('setAccessToken', { userId, accessToken: 'another' })
    expect(await whose(store, 'a')).toBeNull()
    expect(await names()).toEqual([hashOf('b')])
  })

  test('a console session with an OIDC identity begins only for the user of that identity, and its logout URL is encrypted', async () => {
    const { store, database, userId } = await opened()
    const identity = { issuer: 'https://id.example', subject: 's' }
    const user = {
      username: 'eve',
      role: 1,
      status: 1,
      group: 'default',
      quota: 0,
      accessToken: null,
    } as const
    const eve = await store.write('createUserOfIdentity', { identity, user: { ...user, created_time: 1 } })
    const again = { ...user, username: 'eva', created_time: 1 }
    expect((await store.write('createUserOfIdentity', { identity, user: again })).id).toBe(eve.id)
    const proof = {
      kind: 'identity',
      ...identity,
      logoutUrl: 'https://id.example/out?id_token_hint=x',
    } as const
    expect(await begin(store, userId, 'a', { proof })).toBe(false)
    expect(await begin(store, eve.id, 'a', { proof })).toBe(true)
    const [row] = await database.sql('select logout_cipher from sessions')
    expect(String(row?.['logout_cipher'])).toMatch(/^v1\./)
    const end = () => store.write('endSession', { cookieValue: session('a') })
    expect(await end()).toEqual({ logoutUrl: proof.logoutUrl })
    await store.write('deleteUser', { userId: eve.id, deleted_time: 2 })
    expect(await store.read('userByIdentity', identity)).toBeNull()
    expect(await database.sql('select * from identities')).toEqual([])
  })

  test("the session that sets a user's first password stays, and the user's other sessions end", async () => {
    const { store, userId } = await opened()
    for (const name of ['a', 'b']) await begin(store, userId, name)
    await store.write('changeUser', {
      userId,
      fields: { passwordHash: 'new' },
      remainingSession: hashOf('a'),
    })
    expect([await whose(store, 'a'), await whose(store, 'b')]).toEqual([
      expect.objectContaining({ id: userId }),
      null,
    ])
    const first = { userId, fields: { passwordHash: 'other' }, passwordWas: null }
    await expect(store.write('changeUser', first)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('a console session can be ended only by its user, and records when it was last used', async () => {
    const { store, userId } = await opened()
    await begin(store, userId, 'a')
    await store.write('recordSessionUse', { sessionHash: hashOf('a'), nowSeconds: 1060 })
    await store.write('recordSessionUse', { sessionHash: hashOf('a'), nowSeconds: 1050 })
    expect(await store.read('sessionsOf', { userId, nowSeconds: 1060 })).toEqual([
      { idHash: hashOf('a'), created_time: 1000, lastUsed: 1060, address: '192.0.2.1', userAgent: 'test' },
    ])
    const end = (user: number) => store.write('endOwnSession', { userId: user, idHash: hashOf('a') })
    expect([await end(99), await end(userId), await end(userId)]).toEqual([false, true, false])
  })
})

describe.each(ENGINES)('the state of a sign-in, on $name', (engine) => {
  test('the state parameter of an OIDC sign-in can be used once, and is deleted once it has expired', async () => {
    const { store, database } = await rowsWithAccount(engine)
    const mark = (state: string, nowSeconds: number) =>
      store.write('consumeState', { state, expiresTime: nowSeconds + 600, nowSeconds })
    expect([await mark('x', 1000), await mark('x', 1001), await mark('y', 1002)]).toEqual([true, false, true])
    await mark('z', 1601)
    expect(await database.sql('select count(*) as n from used_states')).toEqual([{ n: 2 }])
  })
})

const ONE: Identity = { issuer: 'https://corp.example', subject: 'one' }
const OTHER: Identity = { issuer: 'https://corp.example', subject: 'other' }

describe.each(ENGINES)('identities on $name', (engine) => {
  test('of two OIDC identities that are unlinked at the same time, one stays if there is no other way to sign in', async () => {
    const { store, database } = await rowsWithAccount(engine)
    for (const [index, { issuer, subject }] of [ONE, OTHER].entries())
      await database.sql(
        `insert into identities (issuer, subject, user_id, created_time) values ('${issuer}', '${subject}', 1, ${index})`,
      )
    const unlink = (identity: Identity, acceptsPasswords = false) =>
      store.write('unlinkIdentity', { identity, userId: 1, remainingSession: undefined, acceptsPasswords })
    const outcomes = await Promise.all([unlink(ONE), unlink(OTHER)])
    expect(outcomes.toSorted()).toEqual(['last way', 'unlinked'])
    const [left] = await store.read('identitiesOf', 1)
    expect(await database.sql('select oidc_id from users where id = 1')).toEqual([{ oidc_id: left?.subject }])

    await database.sql("update users set password_hash = 'x' where id = 1")
    if (!left) throw new Error('none is left')
    expect(await unlink(left)).toBe('last way')
    expect(await unlink(left, true)).toBe('unlinked')
    expect(await unlink(left, true)).toBe('unknown')
    expect(await database.sql('select oidc_id from users where id = 1')).toEqual([{ oidc_id: '' }])
  })
})
