import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows, type TestDatabase } from '../../../test/stores/engines.ts'
import { newToken, newUser, SECRETS } from '../../../test/stores/rows.ts'
import { auditedWrite } from '../audit/audited-write.ts'
import { createPostgresKysely } from '../postgres/dialect.ts'
import { connectionPool } from '../postgres/pool.ts'
import { createKysely } from '../sqlite/dialect.ts'
import { SUM_KINDS } from '../sum-kinds.ts'
import type { Db } from './operation.ts'
import type { ImportedToken, ImportedUser } from './seed-accounts.ts'

const NOW = 1_760_000_000
const NOTHING_ELSE = { usedElsewhere: undefined, nowSeconds: NOW }

function userOf(id: number, of: Partial<ImportedUser> = {}): ImportedUser {
  return { ...newUser(), id, used_quota: 70, request_count: 9, email: 'ada@example.com', ...of }
}

function tokenOf(id: number, userId: number, of: Partial<ImportedToken> = {}): ImportedToken {
  return { ...newToken(userId, { key: `key${id}` }), id, used_quota: 0, accessed_time: NOW, ...of }
}

/** Number of statements that `work` runs in a transaction on the database. */
async function statementsOf({ place }: TestDatabase, work: (db: Db) => Promise<unknown>): Promise<number> {
  let statements = 0
  const count = (): void => void (statements += 1)
  const db = place.startsWith('postgres:')
    ? createPostgresKysely(connectionPool(place), count)
    : createKysely(new DatabaseSync(place), count)
  try {
    await db.transaction().execute(work)
  } finally {
    await db.destroy()
  }
  return statements
}

describe.each(ENGINES)('an account that is imported, on $name', (engine) => {
  test('an imported user keeps its ids and usage, and the use of its deleted tokens is booked on one deleted token', async () => {
    const { store, database } = await openedRows(engine)
    const tokens = [tokenOf(3, 5, { used_quota: 20 }), tokenOf(4, 5, { used_quota: 10 })]
    await store.write('importAccount', {
      user: userOf(5),
      tokens,
      usedElsewhere: { tokenId: 90, quota: 40 },
      nowSeconds: NOW,
    })
    expect(await database.sql('SELECT id, used_quota, request_count, email FROM users')).toEqual([
      { id: 5, used_quota: 70, request_count: 9, email: 'ada@example.com' },
    ])
    expect(
      await database.sql(`SELECT used_quota, remain_quota, deleted_time FROM tokens ORDER BY used_quota`),
    ).toEqual([
      { used_quota: 10, remain_quota: 500_000, deleted_time: null },
      { used_quota: 20, remain_quota: 500_000, deleted_time: null },
      { used_quota: 40, remain_quota: 0, deleted_time: NOW },
    ])
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
    const sums =
      'SELECT kind, cast(sum(quota) AS bigint) AS quota FROM usage_sums GROUP BY kind ORDER BY kind'
    expect(await database.sql(sums)).toEqual(
      SUM_KINDS.filter(({ unit }) => unit === 'day').map(({ kind }) => ({ kind, quota: 70 })),
    )
  })

  test('limits of an imported token that an operator set there include the quota that was spent there', async () => {
    const { store } = await openedRows(engine)
    const given = tokenOf(3, 5, { remain_quota: 30, unlimited_quota: false, used_quota: 20 })
    const tokens = [{ ...given, isByOperator: true }, tokenOf(4, 5)]
    await store.write('importAccount', { ...NOTHING_ELSE, user: userOf(5, { used_quota: 20 }), tokens })
    const made = await store.read('listTokensWithKeys', { userId: 5 })
    const terms = new Map(made.map(({ token }) => [token.id, token.operator_terms]))
    expect(terms.get(3)?.grants?.quota).toBe(50)
    expect(terms.get(4)).toEqual({})
  })

  test('a user and its tokens are imported completely or not at all', async () => {
    const { store, database } = await openedRows(engine)
    await store.write('importAccount', { ...NOTHING_ELSE, user: userOf(5), tokens: [tokenOf(3, 5)] })
    const second = userOf(6, { username: 'ben' })
    const tokens = [tokenOf(4, 6), tokenOf(7, 6, { key: 'key3' })]
    await expect(store.write('importAccount', { ...NOTHING_ELSE, user: second, tokens })).rejects.toThrow(
      /belongs to the token 3 of the user "\w+" already: give it another key/,
    )
    expect(await database.sql('SELECT id FROM users')).toEqual([{ id: 5 }])
    expect(await database.sql('SELECT id FROM tokens WHERE deleted_time IS NULL')).toEqual([{ id: 3 }])
    expect((await store.read('takenIdentifiers')).users).toMatchObject([
      { id: 5, username: 'ada', isDeleted: false },
    ])
  })

  test('the number of statements of an import does not depend on the number of tokens, and all their usage is in the sums', async () => {
    const { store, database } = await openedRows(engine)
    const importStatements = (userId: number, count: number): Promise<number> => {
      const tokens = Array.from({ length: count }, (_, index) => ({
        ...tokenOf(userId * 1000 + index, userId, { used_quota: 3, isByOperator: index % 2 === 0 }),
        budget: { amount: 100, period: 'month' } as const,
        budgetUsed: 2,
      }))
      const account = {
        user: userOf(userId, { username: `user ${userId}`, used_quota: 3 * count + 1 }),
        tokens,
        usedElsewhere: { tokenId: userId * 1000 + count, quota: 1 },
        nowSeconds: NOW,
        origin: { actorId: 1, actor: 'root', via: 'api', address: '', atMs: NOW * 1000 },
      }
      return statementsOf(database, (db) => auditedWrite(db, 'importAccount', account, SECRETS))
    }
    const few = await importStatements(5, 2)
    expect(await importStatements(6, 200)).toBe(few)
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
    const budgets = 'SELECT count(*) AS count, cast(sum(used) AS bigint) AS used FROM budget_periods'
    expect(await database.sql(budgets)).toEqual([{ count: 202, used: 404 }])
    const created = "SELECT count(*) AS count FROM audit_log WHERE action = 'key.create'"
    expect(await database.sql(created)).toEqual([{ count: 202 }])
  })

  test('an import adds further tokens to a user who was imported before', async () => {
    const { store } = await openedRows(engine)
    await store.write('importAccount', { ...NOTHING_ELSE, user: userOf(5, { used_quota: 0 }), tokens: [] })
    await store.write('importAccount', { ...NOTHING_ELSE, user: undefined, tokens: [tokenOf(30, 5)] })
    expect((await store.read('takenIdentifiers')).tokens.map(({ id }) => id)).toContain(30)
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
  })
})
