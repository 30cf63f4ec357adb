import { Kysely, PostgresDialect, sql } from 'kysely'
import { mapDatabaseError } from '../store/postgres/failure.ts'
import { openPostgresStore } from '../store/postgres/open.ts'
import { connectionPool } from '../store/postgres/pool.ts'
import type { Database } from '../store/schema.ts'
import type { Secrets } from '../store/secrets.ts'
import { databaseName } from './database-name.ts'
import { COPIED_TABLES, COUNTED_TABLES, NOT_COPIED } from './copy/tables.ts'

/** Sums over a large log take their time. */
const STATEMENT_TIMEOUT_MS = 600_000

/** Ids that were given out at some time are not given out again: the highest of each counted table. */
export type HighestIds = ReadonlyMap<(typeof COUNTED_TABLES)[number], number>

/**
 * Connections to a database that is copied to. Nothing is written to it yet; `blamed` errors are for the
 * caller to make.
 */
export function openTarget(url: string): Kysely<Database> {
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool: connectionPool(url, STATEMENT_TIMEOUT_MS) }) })
}

/**
 * Whether a database holds nothing yet. Throws, with a sentence for the operator, if what it holds is not
 * ours: where there are tables, ours must be among them.
 */
export async function isEmptyDatabase(db: Kysely<Database>, url: string): Promise<boolean> {
  const { rows } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables where table_schema = current_schema()
    order by table_name`.execute(db)
  const names = new Set(rows.map(({ name }) => name))
  if (names.size === 0) return true
  const expected = [...COPIED_TABLES.map(({ name }) => name), ...NOT_COPIED]
  if (names.has('kysely_migration') && expected.every((name) => names.has(name))) return false
  const some = [...names].slice(0, 5).join(', ')
  throw new Error(
    `${databaseName(url)} holds tables that are not Sluice's (${some}${names.size > 5 ? ', …' : ''}): name an empty database`,
  )
}

/** Makes the tables where they are missing. Throws, with a sentence, on another secret or a newer version. */
export async function prepareTarget(url: string, secrets: Secrets): Promise<void> {
  const store = await openPostgresStore({ url, secrets })
  await store.close()
}

/** Lets new rows count on from these ids, or from where the database is already if that is further. */
export async function advanceSequences(db: Kysely<Database>, highest: HighestIds): Promise<void> {
  for (const [table, id] of highest) {
    if (id < 1) continue
    await sql`
      select setval(sequence, greatest(${id}::bigint, coalesce(pg_sequence_last_value(sequence), 1)))
      from (select pg_get_serial_sequence(${table}, 'id')::regclass as sequence) as counted`.execute(db)
  }
}

/** Does it; what a server is to blame for is said so. */
export async function withMappedErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw mapDatabaseError(error)
  }
}
