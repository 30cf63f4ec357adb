import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { settleSecrets, type SecretState } from '../secret-state.ts'
import type { Secrets } from '../secrets.ts'
import { isSchemaCurrent, refuseForeignTables } from '../migrations/steps.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { openForReading } from './connection.ts'
import { mapOpeningError, sqliteCode } from './failure.ts'

/**
 * Tables that charges need, which are checked after a crash. The usage log and its sums are not checked,
 * because they may be large.
 */
const CHECKED_TABLES = [
  'store_identity',
  'users',
  'tokens',
  'holds',
  'unsummed_calls',
  'sums_watermark',
  'budget_periods',
]

const SQLITE_CORRUPT = 11
const SQLITE_BUSY = 5
/** The bits of an extended result code that are its primary code. */
const PRIMARY_CODE = 0xff

/**
 * Whether the file is the database of a gateway, with a secret. Changes nothing, not even the mode of the file and its
 * journal, which opening it for writing changes. Throws a sentence for the operator if it is that of another program or of
 * a newer version, and `StoreUnavailable` if another program has locked it. A file that cannot be read for another reason
 * counts as the database of a gateway: opening it for writing recovers it after a crash, or reports what is wrong.
 */
export function isDatabaseOfGateway(path: string): boolean {
  if (!existsSync(path)) return false
  try {
    using connection = openForReading(path)
    const run = stepsRun(connection)
    if (run.length === 0) return false
    isSchemaCurrent(run)
    return hasIdentity(connection)
  } catch (error) {
    const code = sqliteCode(error)
    if (code === undefined) throw error
    if ((code & PRIMARY_CODE) === SQLITE_BUSY) throw mapOpeningError(error, path)
    return true
  }
}

/**
 * Migrates the schema, and checks that the database was created with this secret. If the last run did not
 * stop cleanly, first checks the tables in `CHECKED_TABLES` for damage.
 */
export async function prepareDatabase(
  connection: DatabaseSync,
  secrets: Secrets,
  { stoppedClean = true }: { readonly stoppedClean?: boolean } = {},
): Promise<void> {
  if (!stoppedClean) refuseDamagedTables(connection, CHECKED_TABLES)
  if (!isSchemaCurrent(stepsRun(connection))) {
    const { migrateConnection } = await import('./migrate-connection.ts')
    await migrateConnection(connection)
  }
  const insert = connection.prepare('INSERT INTO store_identity VALUES (1, ?) ON CONFLICT (id) DO NOTHING')
  if (!hasIdentity(connection)) insert.run(secrets.check)
  settleSecrets(secrets, secretStateOf(connection))
  // Temporary data is kept in memory, so that savepoints write no files. This is set after the migrations,
  // which may need more space than memory has.
  connection.exec('PRAGMA temp_store = MEMORY')
}

/** Reads which secret the database has. */
export function secretStateOf(connection: DatabaseSync): SecretState {
  const row = connection
    .prepare(
      'SELECT key_check AS keyCheck, next_check AS nextCheck, lookup_cipher AS lookupCipher ' +
        'FROM store_identity LEFT JOIN secret_state ON secret_state.id = store_identity.id',
    )
    .get()
  return row as unknown as SecretState
}

function hasIdentity(connection: DatabaseSync): boolean {
  return connection.prepare('SELECT 1 FROM store_identity').get() !== undefined
}

function stepsRun(connection: DatabaseSync): string[] {
  const tables = tablesOf(connection)
  const rows = tables.has('kysely_migration')
    ? connection.prepare('SELECT name FROM kysely_migration').all()
    : []
  if (rows.length === 0) refuseForeignTables(tables)
  return rows.map((row) => row['name'] as string)
}

/** Checks those of the tables that exist for damage. Throws `StoreUnavailable` if one is damaged. */
export function refuseDamagedTables(connection: DatabaseSync, names: readonly string[]): void {
  const tables = tablesOf(connection)
  for (const table of names.filter((name) => tables.has(name))) {
    const { quick_check: found } = connection.prepare(`PRAGMA quick_check('${table}')`).get() ?? {}
    if (found === 'ok') continue
    const cause = Object.assign(new Error(`${table}: ${String(found).split('\n').at(-1)}`), {
      errcode: SQLITE_CORRUPT,
    })
    throw new StoreUnavailable('the database is damaged', { cause, lasting: true })
  }
}

function tablesOf(connection: DatabaseSync): ReadonlySet<string> {
  // Names that begin with sqlite_ are tables that SQLite makes itself and never drops.
  const rows = connection
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'")
    .all()
  return new Set(rows.map((row) => row['name'] as string))
}
