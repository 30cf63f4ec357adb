import { Kysely, PostgresDialect, sql } from 'kysely'
import { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { BANKS, bankFixture, report } from '../../../test/bank-fixture.ts'
import { ENGINES, type TestDatabase } from '../../../test/store-engines.ts'
import { newUser } from '../../../test/store-rows.ts'
import { connectionPool } from '../postgres/pool.ts'
import { openForWriting } from '../sqlite/connection.ts'
import { createKysely } from '../sqlite/dialect.ts'
import type { Database } from '../row-types.ts'
import { POSTGRES_TYPES, SQLITE_TYPES } from './schema/table.ts'
import { migrateToLatest } from './migrate.ts'
import { type Step, STEPS } from './steps.ts'

/** The steps of this version; those of later ones have higher numbers. */
const PRESENT = STEPS.map(({ name }) => name)

/** A step of a later version. */
const LATER: Step = {
  name: '9001-shoe-sizes',
  run: async (db) => {
    await sql`alter table users add column shoe_size text not null default '42'`.execute(db)
  },
}

/** Migrates the database as a version with these steps would, while the store is open. */
async function migrate({ place }: TestDatabase, steps: readonly Step[]): Promise<void> {
  const isShared = place.startsWith('postgres')
  const db = isShared
    ? new Kysely<Database>({ dialect: new PostgresDialect({ pool: connectionPool(place) }) })
    : createKysely(openForWriting(place))
  try {
    await migrateToLatest(db, isShared ? POSTGRES_TYPES : SQLITE_TYPES, steps)
  } finally {
    await db.destroy()
  }
}

const stepsOf = async (database: TestDatabase): Promise<unknown[]> =>
  (await database.sql('SELECT name FROM kysely_migration ORDER BY name')).map(({ name }) => name)

describe.each(ENGINES)('a migration on $name', (engine) => {
  test('a database migration runs once: a second start changes nothing', async () => {
    const database = await engine.database()
    for (let start = 0; start < 2; start += 1) await (await database.open()).close()
    expect(await stepsOf(database)).toEqual(PRESENT)
  })

  test('a database migration runs its steps and keeps all rows, and the earlier version then refuses the database', async () => {
    const database = await engine.prepared()
    const store = await database.open()
    await store.write('createUser', newUser({ username: 'ann' }))
    await store.close()
    for (let start = 0; start < 2; start += 1) await migrate(database, [...STEPS, LATER])
    expect(await stepsOf(database)).toEqual([...PRESENT, LATER.name])
    expect(await database.sql('SELECT username, shoe_size FROM users')).toEqual([
      { username: 'ann', shoe_size: '42' },
    ])
    await expect(database.open()).rejects.toThrow(/newer version of sluice.*9001-shoe-sizes/)
  })

  test('a database migration that fails leaves the database unchanged', async () => {
    const database = await engine.prepared()
    const failing: Step = {
      name: '9002-failing',
      run: async (db) => {
        await sql`create table half (id integer)`.execute(db)
        throw new Error('no more space')
      },
    }
    await expect(migrate(database, [...STEPS, LATER, failing])).rejects.toThrow(
      'the schema of the database could not be brought up to date: no more space',
    )
    expect(await stepsOf(database)).toEqual(PRESENT)
    await (await database.open()).close()
    await migrate(database, [...STEPS, LATER])
    expect(await stepsOf(database)).toEqual([...PRESENT, LATER.name])
  })

  test('a database of a build from before the first release is refused with a message, and not changed', async () => {
    const database = await engine.database()
    const old = [
      'CREATE TABLE kysely_migration (name varchar(255) NOT NULL PRIMARY KEY, timestamp varchar(255) NOT NULL)',
      "INSERT INTO kysely_migration VALUES ('0001-accounts-and-ledger', '2026-01-01T00:00:00.000Z')",
      'CREATE TABLE users (id integer NOT NULL PRIMARY KEY, username text NOT NULL)',
      "INSERT INTO users VALUES (1, 'ann')",
    ]
    for (const statement of old) await database.sql(statement)
    await expect(database.open()).rejects.toThrow(
      'this database was made by a build of sluice from before version 0.1.0, which no version can read: ' +
        'start with a new database, or go on with that build',
    )
    expect(await stepsOf(database)).toEqual(['0001-accounts-and-ledger'])
    expect(await database.sql('SELECT * FROM users')).toEqual([{ id: 1, username: 'ann' }])
    const tables = await database.sql(
      engine.name === 'SQLite'
        ? "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        : "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
    )
    expect(tables).toEqual([{ name: 'kysely_migration' }, { name: 'users' }])
  })
})

describe.each(BANKS)('a migration while nodes run, on $name', (engine) => {
  test('charges that a node reports during a database migration are written after the migration', async () => {
    const { store, database, node, accounts } = await bankFixture(engine)
    await store.close()
    await node('a').apply([report('before', 3)], [])
    const holder = new Client({ connectionString: database.place })
    await holder.connect()
    onTestFinished(() => holder.end())
    const waiting = (count: number): Promise<unknown> =>
      vi.waitUntil(
        async () => {
          const rows = await database.sql(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
          )
          return rows.length === count
        },
        { timeout: 60_000 },
      )
    // The migration has run all of its steps when it records them.
    await holder.query(
      'BEGIN; SELECT 1 FROM kysely_migration LIMIT 1; LOCK TABLE kysely_migration IN SHARE MODE',
    )
    const migrated = migrate(database, [...STEPS, LATER])
    await waiting(1)
    const reported = node('b').apply([report('during', 4)], [])
    await waiting(2)
    await holder.query('COMMIT')
    await migrated
    await reported
    expect(await accounts()).toMatchObject({ token: { used: 7 }, user: { used: 7 } })
    expect(await database.sql('SELECT sum(quota)::bigint AS quota FROM usage_log')).toEqual([{ quota: 7 }])
  })
})
