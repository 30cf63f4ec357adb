import { sql } from 'kysely'
import { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { BANKS, bankFixture, report } from '../../../test/ledger/bank-fixture.ts'
import { ENGINES, type TestDatabase } from '../../../test/stores/engines.ts'
import { keptEntry, keptStore } from '../../../test/stores/kept.ts'
import { newToken, newUser } from '../../../test/stores/rows.ts'
import { LATENCY_BUCKETS } from '../../domain/latency.ts'
import { createPostgresKysely } from '../postgres/dialect.ts'
import { connectionPool } from '../postgres/pool.ts'
import { openForWriting } from '../sqlite/connection.ts'
import { createKysely } from '../sqlite/dialect.ts'
import {
  dimensionValuesOfCall,
  FAILURE_CAUSE_COLUMNS,
  SUM_COLUMNS,
  SUM_KINDS,
  USAGE_SUMS_KEY,
} from '../sum-kinds.ts'
import { TABLES } from '../tables.ts'
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
  const db = isShared ? createPostgresKysely(connectionPool(place)) : createKysely(openForWriting(place))
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

  test('an upgrade leaves every key as it is, and lets keys of other gateways be imported', async () => {
    const database = await engine.prepared()
    const store = await database.open()
    const user = await store.write('createUser', newUser())
    await store.write('createToken', newToken(user.id))
    await store.close()
    for (const index of ['tokens_by_key_form', 'tokens_by_key_end', 'tokens_without_key_end'])
      await database.sql(`DROP INDEX ${index}`)
    const also = database.place.startsWith('postgres') ? ' CASCADE' : ''
    for (const column of ['key_digest', 'key_form', 'team_group', 'key_end'])
      await database.sql(`ALTER TABLE tokens DROP COLUMN ${column}${also}`)
    await database.sql("DELETE FROM kysely_migration WHERE name >= '0005'")
    const upgraded = await database.open()
    onTestFinished(() => upgraded.close())
    expect(await upgraded.read('hasImportedKeys')).toBe(false)
    await upgraded.write('createToken', newToken(user.id, { key: 'a'.repeat(64), key_form: 'digest' }))
    expect(await upgraded.read('hasImportedKeys')).toBe(true)
    expect(await database.sql('SELECT key_form FROM tokens ORDER BY id')).toEqual([
      { key_form: 'plain' },
      { key_form: 'digest' },
    ])
  })

  test('an upgrade removes the password of the mail server from the audit log, which refuses changes as before', async () => {
    const database = await engine.prepared()
    const password = 'literal-mail-password'
    const entry = (before: string | null, after: string | null): string =>
      JSON.stringify([
        { field: 'host', before: null, after: 'mail.example.com' },
        { field: 'password', before, after },
      ])
    for (const changes of [entry(null, password), entry(password, 'another'), entry(password, null)])
      await database.sql(`INSERT INTO audit_log (at_ms, actor_id, actor, via, address, action, object_kind, object_name, changes)
        VALUES (1, 0, 'gateway.yaml', 'file', '', 'option.update', 'option', 'smtp', '${changes}')`)
    await database.sql(`INSERT INTO declared_settings (kind, name, fields, tags)
      VALUES ('option', 'smtp', '${JSON.stringify({ host: 'mail.example.com', password })}', '{}')`)
    await database.sql("DELETE FROM kysely_migration WHERE name >= '0014'")
    const upgraded = await database.open()
    onTestFinished(() => upgraded.close())
    const hidden = ['changed', 'changed', 'removed'].map((after) => ({ changes: entry(null, after) }))
    expect(
      await database.sql("SELECT changes FROM audit_log WHERE object_name = 'smtp' ORDER BY id"),
    ).toEqual(hidden)
    expect(await database.sql('SELECT fields FROM declared_settings')).toEqual([
      { fields: '{"host":"mail.example.com"}' },
    ])
    const change = async () => database.sql("UPDATE audit_log SET actor = 'eve'")
    await expect(change()).rejects.toThrow('append-only')
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

  test('the database of another program is refused by the names of its tables, and gets none', async () => {
    const database = await engine.database()
    await database.sql('CREATE TABLE accounts (id integer NOT NULL PRIMARY KEY)')
    await expect(database.open()).rejects.toThrow('the database of another program (tables accounts)')
    await expect(stepsOf(database)).rejects.toThrow('kysely_migration')
  })

  test('a first start that was killed before its first step is made up for by the next one', async () => {
    const database = await engine.database()
    await database.sql(
      'CREATE TABLE kysely_migration (name varchar(255) PRIMARY KEY, timestamp varchar(255))',
    )
    await (await database.open()).close()
    expect(await stepsOf(database)).toEqual(PRESENT)
  })
})

describe.each(BANKS)('a migration while nodes run, on $name', (engine) => {
  test.each([1, 2, 3])(
    'a node takes the database for that of a gateway where another one creates its tables after statement %i',
    async (last) => {
      const database = await engine.database()
      let statements = 0
      const db = createPostgresKysely(connectionPool(database.place), async () => {
        statements += 1
        if (statements === last) await migrate(database, STEPS)
      })
      onTestFinished(() => db.destroy())
      await migrateToLatest(db, POSTGRES_TYPES)
      expect(await stepsOf(database)).toEqual(PRESENT)
    },
  )

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

/** The statements that bring the sums of usage back to the form before their histograms had one column each. */
function formerSums(isShared: boolean): string[] {
  const integer = isShared ? 'bigint' : 'integer'
  const buckets = ['total', 'first'].flatMap((name) =>
    Array.from({ length: LATENCY_BUCKETS }, (_, bucket) => `${name}_${bucket}`),
  )
  const at = SUM_COLUMNS.indexOf(FAILURE_CAUSE_COLUMNS[0] ?? '')
  const sums = [...SUM_COLUMNS.slice(0, at), ...buckets, ...SUM_COLUMNS.slice(at)]
  const columns = USAGE_SUMS_KEY.map((name) =>
    ['kind', 'start', 'user_id', 'token_id'].includes(name) ? `${name} ${integer}` : `${name} text`,
  )
  return [
    'DROP TABLE usage_sums',
    `CREATE TABLE usage_sums (${[...columns, ...sums.map((name) => `${name} ${integer} not null default 0`)].join(', ')},
       PRIMARY KEY (${USAGE_SUMS_KEY.join(', ')}))`,
    ...(isShared
      ? []
      : [
          'DROP TABLE sums_watermark',
          'DROP TABLE unsummed_calls',
          'CREATE TABLE unsummed_calls (sums text)',
        ]),
    `DELETE FROM kysely_migration WHERE name >= '0003'`,
    ...SUM_KINDS.map((kind) => {
      const values = {
        user_id: 1,
        token_id: 1,
        model: 'm',
        channel: 'c',
        group_name: 'default',
        service_tier: '',
        region: '',
      }
      const key = dimensionValuesOfCall(kind, values).map((value) => `'${value}'`)
      const start = kind.unit === 'slot' ? 48_000 : 1_000
      return `INSERT INTO usage_sums (${USAGE_SUMS_KEY.join(', ')}, requests, failed, quota, total_0, total_59, first_3, failed_gateway)
        VALUES (${[kind.kind, start, ...key].join(', ')}, 9, 2, 700, 4, 5, 123456, 2)`
    }),
    ...(isShared
      ? []
      : [
          `INSERT INTO unsummed_calls VALUES ('${JSON.stringify([[[48_001, 1, 1, 'm', 'c', 'default', '', ''], noted(sums)]])}')`,
        ]),
  ]
}

/** A note of a call that was answered by 3 quota units, with a duration in the first bucket. */
const noted = (sums: readonly string[]): number[] =>
  sums.map((name) => ({ requests: 1, quota: 3, total_0: 1 })[name] ?? 0)

test.each(ENGINES)(
  'sums of usage are converted by an upgrade on $name: histograms to one column, and only of models and channels',
  async (engine) => {
    const isShared = engine.name === 'PostgreSQL'
    const database = await engine.prepared()
    await (await database.open()).close()
    for (const statement of formerSums(isShared)) await database.sql(statement)
    const store = await database.open()
    onTestFinished(() => store.close())
    await store.read('usageSumsCoverage')
    const rows = await database.sql(
      'SELECT kind, start, requests, failed, quota, total_latencies, first_latencies, failed_gateway FROM usage_sums ORDER BY kind, start',
    )
    const ofRoutes = { total_latencies: '0:4 59:5 ', first_latencies: '3:123456 ', failed_gateway: 2 }
    const ofKeys = { total_latencies: '', first_latencies: '', failed_gateway: 0 }
    const before = { start: 48_000, requests: 9, failed: 2, quota: 700 }
    const note = { start: 48_001, requests: 1, failed: 0, quota: 3, first_latencies: '', failed_gateway: 0 }
    const day = { ...before, start: 1_000, ...(isShared ? {} : { requests: 10, quota: 703 }) }
    expect(rows).toEqual([
      { kind: 1, ...before, ...ofKeys },
      ...(isShared ? [] : [{ kind: 1, ...note, total_latencies: '' }]),
      { kind: 2, ...before, ...ofRoutes },
      ...(isShared ? [] : [{ kind: 2, ...note, total_latencies: '0:1 ' }]),
      { kind: 3, ...day, ...ofKeys },
      { kind: 4, ...day, ...ofRoutes, ...(isShared ? {} : { total_latencies: '0:5 59:5 ' }) },
      { kind: 5, ...day, ...ofKeys },
    ])
  },
)

/** What builds of 0.1.0 before its release kept: the former tables, with one row each that matters. */
const FORMER_KEPT = [
  ...['kept', 'kept_parts', 'kept_sums'].map((name) => `DROP TABLE ${name}`),
  ...['response_parts', 'kept_signatures', 'kept_answers', 'answer_parts', 'kept_sums'].map(
    (name) => `CREATE TABLE ${name} (user_id integer)`,
  ),
  'DROP INDEX stored_responses_by_end',
  ...['content_cipher text', 'kept_bytes integer'].map(
    (column) => `ALTER TABLE stored_responses ADD COLUMN ${column}`,
  ),
  'CREATE INDEX stored_responses_by_end ON stored_responses (expires_ms) WHERE content_cipher IS NOT NULL',
  'CREATE INDEX stored_responses_by_age ON stored_responses (user_id, created_ms) WHERE content_cipher IS NOT NULL',
  ...[
    ['native', 'null'],
    ['kept', "'v1.x.y'"],
  ].map(
    ([id, cipher]) =>
      `INSERT INTO stored_responses (id, user_id, model, group_name, channel, key_tag, upstream_id, tokens, created_ms, expires_ms, content_cipher)
       VALUES ('${id}', 2, 'm', 'default', 'c', 'tag', 'up', 1, 0, 9000000000000, ${cipher})`,
  ),
  "DELETE FROM kysely_migration WHERE name >= '0004'",
]

test.each(ENGINES)(
  'an upgrade on $name replaces the tables of what is kept, and records of responses that providers have stay',
  async (engine) => {
    const database = await engine.prepared()
    await (await database.open()).close()
    const columns = async (): Promise<unknown> =>
      (await database.sql('SELECT * FROM stored_responses')).map((row) => Object.keys(row).toSorted())
    for (const statement of FORMER_KEPT) await database.sql(statement)
    const store = await database.open()
    onTestFinished(() => store.close())
    expect(await database.sql('SELECT id FROM stored_responses')).toEqual([{ id: 'native' }])
    expect(await columns()).toEqual([Object.keys(TABLES.stored_responses.columns).toSorted()])
    const kept = keptStore(store)
    expect(await kept.write(keptEntry('cache', 'a'), [Buffer.from('words')])).toBe(true)
    expect((await kept.find('cache', 'a', 2))?.bytes).toBe(5)
  },
)

describe.each(BANKS)('a migration on $name', (engine) => {
  test.each([
    { what: 'tables of migrations', names: ['kysely_migration', 'kysely_migration_lock'] },
    { what: 'tables with the names of ours', names: ['usage_sums', ...Object.keys(TABLES)] },
  ])('a migration is not affected by $what in another schema of the database', async ({ names }) => {
    const database = await engine.database()
    await database.sql('CREATE SCHEMA another')
    for (const name of names) await database.sql(`CREATE TABLE another.${name} (total_0 integer)`)
    await (await database.open()).close()
    for (const statement of FORMER_KEPT) await database.sql(statement)
    const store = await database.open()
    onTestFinished(() => store.close())
    expect(await stepsOf(database)).toEqual(PRESENT)
    expect(await keptStore(store).write(keptEntry('cache', 'a'), [Buffer.from('words')])).toBe(true)
  })
})
