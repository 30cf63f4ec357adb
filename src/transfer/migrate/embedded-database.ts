import { DatabaseSync } from 'node:sqlite'
import { type Kysely, sql } from 'kysely'
import type { Environment } from '../../config/environment.ts'
import { secretsIfAny } from '../../store/gateway-secrets.ts'
import { isSchemaCurrent } from '../../store/migrations/steps.ts'
import type { Database } from '../../store/row-types.ts'
import { secretState } from '../../store/operations/secret-state.ts'
import { settleSecrets } from '../../store/secret-state.ts'
import type { Secrets } from '../../store/secrets.ts'
import { openForReading } from '../../store/sqlite/connection.ts'
import { createKysely } from '../../store/sqlite/dialect.ts'
import { migrateConnection } from '../../store/sqlite/migrate-connection.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { isDatabaseOfGateway } from '../../store/sqlite/prepare-database.ts'
import { COPIED_TABLES } from './tables.ts'
import { lockFolder } from '../lock-folder.ts'
import type { HighestIds } from '../postgres-target.ts'

/** Open calls of an earlier run of the gateway. */
export interface UnsettledCalls {
  readonly count: number
  /** Quota units that were charged for these calls; in a dry run, the sum of their holds. */
  readonly quota: number
}

/** The SQLite database to migrate, locked against writes of other processes until `close`. */
export interface MigrationSource {
  readonly db: Kysely<Database>
  readonly secrets: Secrets
  readonly openCalls: UnsettledCalls
  highestIds(): Promise<HighestIds>
  close(): Promise<void>
}

/**
 * Locks the data folder and the database, settles the calls that were open at a crash, and opens the database at `path` for
 * reading. With `readOnly`, calls are not settled. Rejects with a sentence for the operator.
 */
export async function openMigrationSource(
  environment: Environment,
  path: string,
  { readOnly }: { readonly readOnly: boolean },
): Promise<MigrationSource> {
  refuseMissing(path, environment.dataDir)
  const lock = await lockFolder(
    environment.dataDir,
    path,
    'for what it charges during the copy would be lost',
  )
  try {
    const secrets = secretsOf(environment)
    await refuseForeignContent(path)
    const settled = readOnly ? undefined : await settleOpenCalls(path, secrets)
    const connection = openForReading(path)
    const db = createKysely(connection)
    if (readOnly) await refuseOutdated(db)
    await refuseBetweenSecrets(db, secrets)
    connection.exec('BEGIN')
    return {
      db,
      secrets,
      openCalls: settled ?? (await sumOpenHolds(db)),
      highestIds: () => highestIds(db),
      close() {
        connection.close()
        lock.release()
        return Promise.resolve()
      },
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

function refuseMissing(path: string, dataDir: string): void {
  if (isDatabaseOfGateway(path)) return
  throw new Error(
    `there is no database of a gateway in ${dataDir}: set DATA_DIR to the folder of the gateway that is to be moved`,
  )
}

function secretsOf(environment: Environment): Secrets {
  const secrets = secretsIfAny(environment)
  if (secrets) return secrets
  throw new Error(
    `${environment.dataDir} holds no file "secret": set GATEWAY_SECRET to the secret that the database was made with`,
  )
}

async function settleOpenCalls(path: string, secrets: Secrets): Promise<UnsettledCalls> {
  const store = await openSqliteStore({ path, secrets, onCallingThread: true })
  try {
    const settled = await store.write('recover', { owner: 'a move', nowMs: Date.now(), parkedToo: true })
    // As at a start: no process makes these calls any more.
    await store.write('lapseClaims', { node: undefined })
    return settled
  } finally {
    await store.close()
  }
}

// Refuses a database with triggers or views of others. Called before anything is written, because writing
// would run such a trigger.
async function refuseForeignContent(path: string): Promise<void> {
  const connection = openForReading(path)
  try {
    await refuseForeignSchema(connection, await isUpToDate(createKysely(connection)))
  } finally {
    connection.close()
  }
}

async function isUpToDate(db: Kysely<Database>): Promise<boolean> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db)
  return isSchemaCurrent(rows.map(({ name }) => name))
}

async function refuseOutdated(db: Kysely<Database>): Promise<void> {
  if (!(await isUpToDate(db))) {
    throw new Error(
      'the database is one of an older version: start the gateway once, or move it without --dry-run, which updates it',
    )
  }
}

// A new database is made with one secret, with which it could not read what the other one has encrypted.
async function refuseBetweenSecrets(db: Kysely<Database>, secrets: Secrets): Promise<void> {
  const state = await secretState(db)
  settleSecrets(secrets, state)
  if (state.nextCheck !== null)
    throw new Error(
      'the secret of this database is being changed: end the change first, by "sluice secret change"',
    )
}

async function sumOpenHolds(db: Kysely<Database>): Promise<UnsettledCalls> {
  const { rows } = await sql<UnsettledCalls>`
    select count(*) as count, coalesce(sum(cast(amount as double precision)), 0) as quota from holds`.execute(
    db,
  )
  return rows[0] ?? { count: 0, quota: 0 }
}

// SQLite has a counter for each table whose ids it generates, which also covers deleted rows.
async function highestIds(db: Kysely<Database>): Promise<HighestIds> {
  const { rows } = await sql<{ name: string; seq: number }>`select name, seq from sqlite_sequence`.execute(db)
  const copied = new Set(COPIED_TABLES.map(({ name }) => name))
  return new Map(rows.flatMap(({ name, seq }) => (copied.has(name) ? [[name, seq] as const] : [])))
}

/** A row of SQLite's table of schema objects. */
interface SchemaObject {
  readonly type: string
  readonly name: string
  readonly sql: string | null
}

/**
 * Refuses a database with views, triggers or virtual tables that Sluice did not create, because they run code
 * of their author when the database is read or written. If the schema is of this version, its triggers must
 * be exactly those of this version.
 */
async function refuseForeignSchema(db: DatabaseSync, isCurrent: boolean): Promise<void> {
  const own = new DatabaseSync(':memory:')
  try {
    await migrateConnection(own)
    const expected = new Map(objectsOf(own).map((object) => [object.name, object]))
    for (const { type, name, sql } of objectsOf(db)) {
      const same = expected.get(name)
      const isOwnTrigger = type === 'trigger' && same?.type === type && (!isCurrent || same.sql === sql)
      if (!isOwnTrigger && runsCode(type, sql))
        throw new Error(
          `the database has a ${type} "${name}" that Sluice did not make: remove it, or copy a backup from before it`,
        )
    }
  } finally {
    own.close()
  }
}

function objectsOf(db: DatabaseSync): SchemaObject[] {
  return db.prepare('SELECT type, name, sql FROM sqlite_schema').all() as unknown as SchemaObject[]
}

/** Whether reading or writing a schema object runs code, as with views, triggers and computed columns. */
function runsCode(type: string, sql: string | null): boolean {
  if (type === 'view' || type === 'trigger') return true
  return sql !== null && (/^create virtual/i.test(sql) || /\b(?:generated always|as)\s*\(/i.test(sql))
}
