import type { TokenChanges } from '../../domain/records/token.ts'
import { describe, expect, test } from 'vitest'
import { ENGINES, rowsWithAccount } from '../../../test/stores/engines.ts'
import { newToken, newUser } from '../../../test/stores/rows.ts'

const NOW = 1_800_000_000

describe.each(ENGINES)('a change of a token, on $name', (engine) => {
  async function opened() {
    const rows = await rowsWithAccount(engine)
    const { store, userId, tokenId } = rows
    const change = (fields: TokenChanges, of: { userId?: number; tokenId?: number } = {}) =>
      store.write('changeToken', { userId, tokenId, fields, maxQuota: 1000, nowMs: NOW * 1000, ...of })
    return { ...rows, change, stored: () => store.read('findTokenWithKey', { tokenId, userId }) }
  }

  test('a change of a token writes only the given fields, and returns the previous quota', async () => {
    const { change, stored } = await opened()
    const before = await stored()
    const changed = await change({ name: 'other', remain_quota: 7 })
    expect(changed).toEqual({
      token: { ...before?.token, name: 'other', remain_quota: 7 },
      key: 'k1',
      remainBefore: 500_000,
    })
    const fields = {
      expired_time: NOW + 1,
      unlimited_quota: true,
      remain_quota: Number.MAX_SAFE_INTEGER,
      model_limits_enabled: true,
      model_limits: 'a,b',
      allow_ips: '10.0.0.1',
      group: 'vip',
      vendor_routes: '{}',
    }
    expect(await change(fields)).toMatchObject({ remainBefore: 7 })
    expect((await stored())?.token).toEqual({ ...before?.token, name: 'other', ...fields })
  })

  test("a change of a token's quota or expiry also sets its status, e.g. to expired or exhausted", async () => {
    const { store, userId, tokenId, change, stored } = await opened()
    const after = async (fields: TokenChanges) => {
      await change(fields)
      return (await stored())?.token.status
    }
    expect(await after({ remain_quota: 0 })).toBe(4)
    expect(await after({ expired_time: NOW })).toBe(3)
    expect(await after({ expired_time: NOW + 1 })).toBe(4)
    expect(await after({ unlimited_quota: true })).toBe(1)
    await store.write('enableOrDisableToken', { userId, tokenId, status: 2, nowMs: 0 })
    expect(await after({ name: 'still off' })).toBe(2)
  })

  test("a token's quota cannot be set below 0 or above the maximum, and a refused change writes nothing", async () => {
    const { change, stored } = await opened()
    const before = await stored()
    for (const remain_quota of [-1, 1001]) {
      await expect(change({ name: 'x', remain_quota })).rejects.toThrow('from 0 to 1000')
    }
    expect(await stored()).toEqual(before)
  })

  test('a user can change only existing tokens of their own', async () => {
    const { database, userId, change } = await opened()
    expect(await change({ name: 'x' }, { userId: userId + 1 })).toBeNull()
    expect(await change({ name: 'x' }, { tokenId: 99 })).toBeNull()
    await database.sql('UPDATE tokens SET deleted_time = 1')
    expect(await change({ name: 'x' })).toBeNull()
  })
})

describe.each(ENGINES)('enabling, on $name', (engine) => {
  test('an expired or exhausted token cannot be enabled, but a disabled one can', async () => {
    const { store, userId } = await rowsWithAccount(engine)
    const enabled = async (of: Parameters<typeof newToken>[1]) => {
      const { id } = await store.write('createToken', newToken(userId, { key: `k${Math.random()}`, ...of }))
      const on = { userId, tokenId: id, status: 1, nowMs: NOW * 1000 } as const
      return (await store.write('enableOrDisableToken', on))?.token.status
    }
    await expect(enabled({ status: 3, expired_time: NOW })).rejects.toThrow('expired_time')
    await expect(enabled({ status: 1, expired_time: NOW })).rejects.toThrow('expired_time')
    await expect(enabled({ status: 4, remain_quota: 0 })).rejects.toThrow('remain_quota')
    expect(await enabled({ status: 3, expired_time: NOW + 1 })).toBe(1)
    expect(await enabled({ status: 4, remain_quota: 1 })).toBe(1)
    expect(await enabled({ status: 4, remain_quota: 0, unlimited_quota: true })).toBe(1)
    expect(await enabled({ status: 2, remain_quota: 0 })).toBe(1)
  })
})

describe.each(ENGINES)('deleting, on $name', (engine) => {
  test('deleting several tokens deletes only existing tokens of the user, whatever ids are named', async () => {
    const { store, database, userId, tokenId } = await rowsWithAccount(engine)
    const other = await store.write('createUser', newUser({ username: 'bob' }))
    const { id: foreign } = await store.write('createToken', newToken(other.id, { key: 'foreign' }))
    const { id: kept } = await store.write('createToken', newToken(userId, { key: 'kept' }))
    const tokenIds = [
      ...Array.from({ length: 70_000 }, (_, index) => index + 1000),
      foreign,
      tokenId,
      tokenId,
    ]
    expect(await store.write('deleteTokens', { userId, tokenIds, nowSeconds: NOW })).toEqual([tokenId])
    expect(await database.sql('SELECT id, deleted_time FROM tokens ORDER BY id')).toEqual([
      { id: tokenId, deleted_time: NOW },
      { id: foreign, deleted_time: null },
      { id: kept, deleted_time: null },
    ])
    expect(await store.write('deleteTokens', { userId, tokenIds, nowSeconds: NOW + 1 })).toEqual([])
  })

  test('a deleted token keeps its name, its key and its sums, but none of its long texts', async () => {
    const { store, database, userId } = await rowsWithAccount(engine)
    const texts = {
      model_limits: 'm,'.repeat(30_000) + 'n',
      allow_ips: Array.from({ length: 1000 }, (_, at) => `192.0.2.${at % 256}`).join('\n'),
      vendor_routes: JSON.stringify({ ['v'.repeat(2000)]: 'default' }),
      operator_terms: { grants: { models: 'm,'.repeat(30_000) } },
    }
    const ids: number[] = []
    for (const key of ['k2', 'k3']) {
      const token = newToken(userId, { key, name: key, guards: ['g'], model_limits_enabled: true, ...texts })
      ids.push((await store.write('createToken', token)).id)
    }
    const sql = `SELECT * FROM tokens WHERE id IN (${ids.join()}) ORDER BY id`
    const before = await database.sql(sql)
    await store.write('deleteTokens', { userId, tokenIds: ids.slice(0, 1), nowSeconds: NOW })
    await store.write('deleteUser', { userId, deleted_time: NOW })
    const blank = { model_limits: '', allow_ips: null, vendor_routes: '', operator_terms: '' }
    // PostgreSQL counts the changes that nodes must learn of, of which the deletion is the first.
    const counted = engine.name === 'PostgreSQL' && { epoch: 1 }
    expect(await database.sql(sql)).toEqual(
      before.map((row) => ({ ...row, ...blank, ...counted, deleted_time: NOW })),
    )
  })

  test('70,000 tokens of a user, more than one SQL statement can name, can be deleted at once', async () => {
    const { store, database, userId, tokenId } = await rowsWithAccount(engine)
    await database.sql(`
      WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 70000)
      INSERT INTO tokens (user_id, name, key_hash, key_cipher, status, created_time, accessed_time, expired_time,
        remain_quota, unlimited_quota, used_quota, model_limits_enabled, model_limits, group_name, vendor_routes)
      SELECT ${userId}, 'many', 'hash' || n, '', 1, 0, 0, -1, 0, 0, 0, 0, '', '', '' FROM many`)
    const ids = (await database.sql('SELECT id FROM tokens')).map(({ id }) => Number(id))
    const deleted = await store.write('deleteTokens', { userId, tokenIds: ids, nowSeconds: NOW })
    expect(deleted).toHaveLength(70_001)
    expect(await store.read('findTokenWithKey', { userId, tokenId })).toBeNull()
  })
})

describe.each(ENGINES)('pages, on $name', (engine) => {
  test("a page of tokens has a user's existing tokens, newest first, with their total number", async () => {
    const { store, database, userId, tokenId } = await rowsWithAccount(engine)
    const other = await store.write('createUser', newUser({ username: 'bob' }))
    await store.write('createToken', newToken(other.id, { key: 'foreign' }))
    for (const key of ['k2', 'gone', 'k3'])
      await store.write('createToken', newToken(userId, { name: key, key }))
    await database.sql("UPDATE tokens SET deleted_time = 1 WHERE name = 'gone'")
    const page = async (offset: number, limit: number) => {
      const { total, tokens } = await store.read('findTokenPageWithKeys', { userId, offset, limit })
      return [total, ...tokens.map(({ key }) => key)]
    }
    expect(await page(0, 2)).toEqual([3, 'k3', 'k2'])
    expect(await page(2, 2)).toEqual([3, 'k1'])
    expect(await page(99_999_999_999_900, 100)).toEqual([3])
    expect((await store.read('listTokensWithKeys', { userId })).map(({ key }) => key)).toEqual([
      'k3',
      'k2',
      'k1',
    ])
    expect(await store.read('findTokenWithKey', { userId, tokenId })).toMatchObject({
      key: 'k1',
      token: { id: tokenId },
    })
    expect(await store.read('findTokenWithKey', { userId: other.id, tokenId })).toBeNull()
  })
})
