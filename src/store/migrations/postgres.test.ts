import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import { expect, test } from 'vitest'
import { accountsAndLedger } from './0001-accounts-and-ledger.ts'
import { usageDays } from './0002-usage-days.ts'
import { POSTGRES_TYPES } from './column-types.ts'

test('the same migrations speak PostgreSQL: counted ids, 64-bit columns, and no word of SQLite’s own', async () => {
  const said: string[] = []
  const db = new Kysely<never>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
    log: ({ query }) => void said.push(query.sql.trim()),
  })
  await accountsAndLedger(POSTGRES_TYPES).up(db)
  await usageDays(POSTGRES_TYPES).up(db)
  const tables = said.filter((sql) => sql.startsWith('create table'))
  expect(tables).toHaveLength(6)
  expect(tables.filter((sql) => sql.includes('"id" bigserial primary key'))).toHaveLength(2)
  for (const sql of tables) {
    expect(sql).not.toMatch(/strict|without rowid|autoincrement|\binteger\b/)
    expect(sql.endsWith(')')).toBe(true)
  }
  expect(tables.join('\n')).toContain('"remain_quota" bigint not null')
})
