import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { cpuMs } from '../../../test/fixtures/pace.ts'
import {
  holdOf,
  newToken,
  newUser,
  openedStore,
  settledCall,
  storeWithAccount,
  temporaryFolder,
  USAGE_OF_ALL_COUNTS,
} from '../../../test/stores/rows.ts'
import { ROW_COUNTS } from '../../../test/stores/usage-log-rows.ts'
import type { Field } from '../../domain/records/record.ts'
import { USAGE } from '../../domain/records/usage.ts'

/** A value other than the default for each field of a settled call that has one. */
const OTHER_THAN_DEFAULTS = Object.fromEntries(
  Object.entries<Field>(USAGE.fields)
    .filter(([, field]) => field.default !== undefined)
    .map(([name, { type, default: value }], at) => {
      const text = type.bounds.enum?.find((one) => one !== value) ?? `a ${name}`
      const other = type.json === 'boolean' ? value !== true : type.json === 'integer' ? 1000 + at : text
      return [name, other]
    }),
) as unknown as typeof USAGE.defaults

const NOTHING_WRONG = { tokens: [], users: [], days: [], openHolds: { count: 0, amount: 0 } }

describe('a settlement', () => {
  test('settling a call changes used and remaining quota of token and user, the time of last use and the request count', async () => {
    const { store, tokenId, who } = await storeWithAccount()
    await store.write('hold', holdOf(who, 'a'))
    await store.write('settle', settledCall(who, 'a'))
    const account = await store.write('loadAccount', { tokenId })
    expect(account?.token).toMatchObject({
      used_quota: 300,
      remain_quota: 499_700,
      accessed_time: 1_760_000_101,
    })
    expect(account?.user).toMatchObject({ used_quota: 300, quota: 999_700, request_count: 1 })
    expect(account?.openHolds).toEqual({ token: 0, user: 0 })
    expect(await store.read('findUnbalancedAccounts')).toEqual(NOTHING_WRONG)
  })

  test('a settlement charges a call once, however often it is written, in one commit or in several', async () => {
    const { store, tokenId, who } = await storeWithAccount()
    await Promise.all([
      store.write('hold', holdOf(who, 'a')),
      store.write('settle', settledCall(who, 'a')),
      store.write('settle', settledCall(who, 'a')),
    ])
    await store.write('settle', settledCall(who, 'a', { quota: 999 }))
    const account = await store.write('loadAccount', { tokenId })
    expect(account?.token.used_quota).toBe(300)
    expect(account?.user).toMatchObject({ used_quota: 300, request_count: 1 })
    expect(await store.read('findUnbalancedAccounts')).toEqual(NOTHING_WRONG)
  })

  test('a settlement stores every detail of the call in the usage log', async () => {
    const path = join(temporaryFolder(), 'sluice.db')
    const { store, who } = await storeWithAccount(path)
    const call = settledCall(who, 'a', { ...OTHER_THAN_DEFAULTS, usage: USAGE_OF_ALL_COUNTS, stream: true })
    await store.write('settle', call)
    const file = new DatabaseSync(path, { readOnly: true })
    const rows = file.prepare('SELECT * FROM usage_log').all()
    file.close()
    expect(rows.map((row) => ({ ...row }))).toEqual([
      {
        ...USAGE.toRow(OTHER_THAN_DEFAULTS),
        ...ROW_COUNTS,
        id: 'a',
        ended_ms: 1_760_000_101_500,
        user_id: who.userId,
        token_id: who.tokenId,
        model: 'm',
        requested_model: 'm',
        upstream_model: 'm-2026',
        channel: 'c',
        group_name: 'default',
        kind: 'chat',
        quota: 300,
        price_version: 'v1',
        duration_ms: 1500,
        first_byte_ms: OTHER_THAN_DEFAULTS.first_byte_ms,
        stream: 1,
        reason: 'complete',
      },
    ])
  })

  test('a settlement without delivered content does not count as a request or change the time of last use', async () => {
    const { store, tokenId, who } = await storeWithAccount()
    await store.write('settle', settledCall(who, 'a'))
    await store.write(
      'settle',
      settledCall(who, 'b', { quota: 0, delivered: false, reason: 'failed', ended_ms: 1_760_000_000_000 }),
    )
    const account = await store.write('loadAccount', { tokenId })
    expect(account?.user.request_count).toBe(1)
    expect(account?.token.accessed_time).toBe(1_760_000_101)
  })

  test('a settlement may make a balance negative, and changes the counters of a token with unlimited quota like those of others', async () => {
    const { store, userId } = await storeWithAccount()
    const token = await store.write(
      'createToken',
      newToken(userId, { name: 'free', key: 'k2', remain_quota: 0, unlimited_quota: true }),
    )
    await store.write('settle', settledCall({ userId, tokenId: token.id }, 'a', { quota: 1_000_001 }))
    const account = await store.write('loadAccount', { tokenId: token.id })
    expect(account?.token).toMatchObject({
      used_quota: 1_000_001,
      remain_quota: -1_000_001,
      unlimited_quota: true,
    })
    expect(account?.user.quota).toBe(-1)
  })

  test('settlements add up exactly in whole quota units up to 2^53, and a fraction of a unit is refused', async () => {
    const { store, tokenId, who } = await storeWithAccount()
    const near = Number.MAX_SAFE_INTEGER - 1
    await store.write('settle', settledCall(who, 'a', { quota: near }))
    await store.write('settle', settledCall(who, 'b', { quota: 1 }))
    const account = await store.write('loadAccount', { tokenId })
    expect(account?.token.used_quota).toBe(Number.MAX_SAFE_INTEGER)
    await expect(store.write('settle', settledCall(who, 'c', { quota: 0.5 }))).rejects.toThrow(/INTEGER/)
  })

  test('many settlements of many accounts in one commit add up exactly', async () => {
    const store = await openedStore()
    const accounts: { userId: number; tokenId: number; quota: number; calls: number }[] = []
    for (const [index, username] of ['ada', 'bob', 'cyd'].entries()) {
      const user = await store.write('createUser', newUser({ username }))
      for (const name of ['x', 'y']) {
        const token = await store.write('createToken', newToken(user.id, { name, key: `${index}${name}` }))
        accounts.push({ userId: user.id, tokenId: token.id, quota: 0, calls: 0 })
      }
    }
    await Promise.all(
      Array.from({ length: 1200 }, (_, index) => {
        const account = accounts[(index * 7) % accounts.length]
        if (!account) throw new Error('no account')
        account.quota += index
        account.calls += 1
        return store.write('settle', settledCall(account, `id-${index}`, { quota: index }))
      }),
    )
    for (const { tokenId, quota } of accounts) {
      const account = await store.write('loadAccount', { tokenId })
      expect(account?.token.used_quota).toBe(quota)
    }
    const ada = await store.read('userByName', 'ada')
    expect(ada?.request_count).toBe((accounts[0]?.calls ?? 0) + (accounts[1]?.calls ?? 0))
    expect(await store.read('findUnbalancedAccounts')).toEqual(NOTHING_WRONG)
  })
})

describe('findUnbalancedAccounts', () => {
  test('the audit of the books names tokens and users whose use is not the sum of their charges, and sums up the open holds', async () => {
    const path = join(temporaryFolder(), 'sluice.db')
    const { store, userId, tokenId, who } = await storeWithAccount(path)
    await store.write('settle', settledCall(who, 'a'))
    await store.write('hold', holdOf(who, 'b'))
    await store.write('hold', holdOf(who, 'c', { amount: 500 }))
    const tamper = new DatabaseSync(path)
    tamper.exec('UPDATE tokens SET used_quota = used_quota + 1; UPDATE users SET used_quota = used_quota - 1')
    tamper.close()
    expect(await store.read('findUnbalancedAccounts')).toEqual({
      tokens: [tokenId],
      users: [userId],
      days: [],
      openHolds: { count: 2, amount: 1500 },
    })
  })
})

describe('an account', () => {
  test('an account loaded from the database includes all writes that were queued before', async () => {
    const { store, tokenId, who } = await storeWithAccount()
    const queued = [
      store.write('hold', holdOf(who, 'a')),
      store.write('hold', holdOf(who, 'b')),
      store.write('growHold', { id: 'b', user_id: 1, by: 50 }),
      store.write('settle', settledCall(who, 'a')),
    ]
    const account = await store.write('loadAccount', { tokenId })
    expect(account?.token).toMatchObject({ remain_quota: 499_700, user_id: who.userId, name: 'main' })
    expect(account?.openHolds).toEqual({ token: 1050, user: 1050 })
    await Promise.all(queued)
  })

  test('a loaded account states the open holds of its token, and those of all tokens of its user', async () => {
    const { store, userId, tokenId, who } = await storeWithAccount()
    const other = await store.write('createToken', newToken(userId, { name: 'other', key: 'k2' }))
    await store.write('hold', holdOf(who, 'a'))
    await store.write('hold', holdOf({ userId, tokenId: other.id }, 'b'))
    const account = await store.write('loadAccount', { tokenId })
    expect(account?.openHolds).toEqual({ token: 1000, user: 2000 })
  })

  test('loading the account of a token that never existed returns null', async () => {
    const { store } = await storeWithAccount()
    expect(await store.write('loadAccount', { tokenId: 99 })).toBeNull()
  })
})

describe('recovery', () => {
  test('recovery after a crash charges an open hold for its prompt and recorded output, at most the held amount', async () => {
    const { store, tokenId, who } = await storeWithAccount()
    await store.write('hold', holdOf(who, 'untouched', { owner: 'gone' }))
    await store.write('hold', holdOf(who, 'marked', { owner: 'gone' }))
    await store.write('markProgress', { id: 'marked', user_id: 1, amount: 250 })
    await store.write('markProgress', { id: 'marked', user_id: 1, amount: 200 })
    await store.write('hold', holdOf(who, 'beyond', { owner: 'gone', amount: 400 }))
    await store.write('markProgress', { id: 'beyond', user_id: 1, amount: 900 })
    await store.write('hold', holdOf(who, 'grown', { owner: 'gone' }))
    await store.write('growHold', { id: 'grown', user_id: 1, by: 1000 })
    await store.write('markProgress', { id: 'grown', user_id: 1, amount: 1800 })
    await store.write('hold', holdOf(who, 'alive'))
    // The charges are 100, 100 + 250, 400 (of known 1,000) and 100 + 1,800.
    const total = 100 + 350 + 400 + 1900
    expect(await store.write('recover', { owner: 'now', nowMs: 1_760_000_200_000 })).toEqual({
      count: 4,
      quota: total,
    })
    const account = await store.write('loadAccount', { tokenId })
    expect(account?.token.used_quota).toBe(total)
    // Only delivered calls count as requests.
    expect(account?.user.request_count).toBe(3)
    expect(account?.openHolds.token).toBe(1000)
    expect(await store.write('recover', { owner: 'now', nowMs: 1_760_000_300_000 })).toEqual({
      count: 0,
      quota: 0,
    })
    expect((await store.read('findUnbalancedAccounts')).tokens).toEqual([])
  })

  test('recovery after a crash leaves the holds of background calls open, and settles them only if `parkedToo` is set', async () => {
    const { store, who } = await storeWithAccount()
    const opening = holdOf(who, 'parked', { owner: 'gone' })
    void store.write('hold', opening)
    void store.write('parkHold', { id: 'parked', user_id: who.userId })
    await store.write('markProgress', { id: 'parked', user_id: who.userId, amount: 40 })
    expect((await store.write('recover', { owner: 'now', nowMs: 1 })).count).toBe(0)
    expect(await store.write('parkedHolds')).toEqual([{ ...opening, owner: 'parked', progress_amount: 40 }])
    const moved = await store.write('recover', { owner: 'now', nowMs: 1, parkedToo: true })
    expect(moved).toEqual({ count: 1, quota: 140 })
    expect(await store.write('parkedHolds')).toEqual([])
  })

  test('holds that are too large to be counted are read all the same, and settled', async () => {
    const { store, tokenId, who } = await storeWithAccount()
    const MAX = Number.MAX_SAFE_INTEGER
    for (const id of ['parked', 'also-parked', 'open']) {
      await store.write('hold', holdOf(who, id, { owner: 'gone', amount: MAX }))
      await store.write('growHold', { id, user_id: who.userId, by: MAX })
      if (id !== 'open') await store.write('parkHold', { id, user_id: who.userId })
    }
    const account = await store.write('loadAccount', { tokenId })
    expect(account?.openHolds.user).toBeGreaterThanOrEqual(6 * MAX)
    const [held] = await store.read('heldOnAccounts', { accounts: [`u:${who.userId}`] })
    expect(held?.held).toBeGreaterThanOrEqual(6 * MAX)
    expect((await store.read('findUnbalancedAccounts')).openHolds.count).toBe(3)
    expect(await store.write('parkedHolds')).toMatchObject([{ amount: MAX }, { amount: MAX }])
    expect(await store.write('recover', { owner: 'now', nowMs: 1 })).toEqual({ count: 1, quota: 100 })
  })

  test('neither recovery after a crash nor a late settlement charges a call that the other has already charged', async () => {
    const { store, tokenId, who } = await storeWithAccount()
    await store.write('hold', holdOf(who, 'a', { owner: 'gone' }))
    await store.write('settle', settledCall(who, 'a'))
    expect((await store.write('recover', { owner: 'now', nowMs: 1 })).count).toBe(0)
    await store.write('hold', holdOf(who, 'b', { owner: 'gone' }))
    await store.write('recover', { owner: 'now', nowMs: 1 })
    await store.write('settle', settledCall(who, 'b'))
    expect((await store.write('loadAccount', { tokenId }))?.token.used_quota).toBe(300 + 100)
  })

  test('recovery after a crash settles 10,000 holds in at most five times the time that writing them took', async () => {
    const { store, who } = await storeWithAccount()
    // CPU time, as the store is on this thread: other programs may take the processor during one of the two.
    const began = cpuMs()
    await Promise.all(
      Array.from({ length: 10_000 }, (_, index) =>
        store.write('hold', holdOf(who, `id-${index}`, { owner: 'gone' })),
      ),
    )
    const start = cpuMs()
    const written = start - began
    const recovered = await store.write('recover', { owner: 'now', nowMs: 1_760_000_200_000 })
    const took = cpuMs() - start
    expect(recovered).toEqual({ count: 10_000, quota: 1_000_000 })
    expect(took).toBeLessThan(5 * written)
    expect(await store.read('findUnbalancedAccounts')).toEqual(NOTHING_WRONG)
  })
})
