import { type Kysely, sql } from 'kysely'
import { tablesIn } from '../store/migrations/migrate.ts'
import { isTableOfMigrations } from '../store/migrations/steps.ts'
import { createPostgresKysely } from '../store/postgres/dialect.ts'
import { mapDatabaseError } from '../store/postgres/failure.ts'
import { openPostgresStore } from '../store/postgres/open.ts'
import { connectionPool } from '../store/postgres/pool.ts'
import type { Database } from '../store/row-types.ts'
import type { Secrets } from '../store/secrets.ts'
import { COPIED_TABLES, TABLES_NOT_COPIED } from './migrate/tables.ts'

/** Timeout of a statement in milliseconds. It is long, because sums over a large log are slow. */
const STATEMENT_TIMEOUT_MS = 600_000

/** Highest id that each table with generated ids has ever assigned, so that no id is assigned again. */
export type HighestIds = ReadonlyMap<string, number>

/**
 * Opens connections to a target database without writing to it. Errors are passed on as the driver throws
 * them.
 */
export function openTarget(url: string): Kysely<Database> {
  return createPostgresKysely(connectionPool(url, { statementMs: STATEMENT_TIMEOUT_MS }))
}

/**
 * Whether a database has no tables, in the sense in which a start takes it for empty. Rejects with a sentence for the
 * operator if it has tables, but not all tables of Sluice.
 */
export async function isEmptyDatabase(db: Kysely<Database>, url: string): Promise<boolean> {
  const tables = await tablesIn(db)
  const names = new Set(tables.filter((name) => !isTableOfMigrations(name)).sort())
  if (names.size === 0) return true
  const expected = [...COPIED_TABLES.map(({ name }) => name), ...TABLES_NOT_COPIED]
  if (tables.includes('kysely_migration') && expected.every((name) => names.has(name))) return false
  const some = [...names].slice(0, 5).join(', ')
  throw new Error(
    `${databaseName(url)} holds tables that are not Sluice's (${some}${names.size > 5 ? ', …' : ''}): name an empty database`,
  )
}

/** Creates missing tables. Rejects with a sentence if the secret differs or the schema is newer. */
export async function prepareTarget(url: string, secrets: Secrets): Promise<void> {
  const store = await openPostgresStore({ url, secrets })
  await store.close()
}

/** Sets the id sequences to these ids. A sequence that is higher already is not changed. */
export async function advanceSequences(db: Kysely<Database>, highest: HighestIds): Promise<void> {
  for (const [table, id] of highest) {
    if (id < 1) continue
    await sql`
      select setval(sequence, greatest(${id}::bigint, coalesce(pg_sequence_last_value(sequence), 1)))
      from (select pg_get_serial_sequence(${table}, 'id')::regclass as sequence) as counted`.execute(db)
  }
}

/** Runs `work`. Converts errors of the database server to `StoreUnavailable`. */
export async function withMappedErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw mapDatabaseError(error)
  }
}

/** Describes the database of a `postgres:` URL for messages, without user and password. */
export function databaseName(url: string): string {
  const { hostname, port, pathname } = new URL(url)
  const host = decodeURIComponent(hostname)
  return `the database "${decodeURIComponent(pathname.slice(1))}" on ${host || 'localhost'}${port && `:${port}`}`
}
