import type { Kysely } from 'kysely'
import { DEFAULT_MIGRATION_TABLE, type Migration, Migrator } from 'kysely/migration'
import type { Database } from '../schema.ts'
import { accountsAndLedger } from './0001-accounts-and-ledger.ts'
import type { ColumnTypes } from './column-types.ts'

/** Every step of the schema, in order. A step that was released is never changed; a new one is added. */
function steps(types: ColumnTypes): Readonly<Record<string, Migration>> {
  return { '0001-accounts-and-ledger': accountsAndLedger(types) }
}

/**
 * Brings the database to the schema that this version knows. All steps that are missing run in one transaction: a process
 * that dies on the way leaves the schema as it was. Throws on a database that a newer version has changed.
 */
export async function migrateToLatest(db: Kysely<Database>, types: ColumnTypes): Promise<void> {
  const known = steps(types)
  await refuseNewer(db, Object.keys(known))
  const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve({ ...known }) } })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined)
    throw new Error('the schema of the database could not be brought up to date', { cause: error })
}

async function refuseNewer(db: Kysely<Database>, known: readonly string[]): Promise<void> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
  if (!tables.some((table) => table.name === DEFAULT_MIGRATION_TABLE)) return
  const rows = await db
    .withTables<{ kysely_migration: { name: string } }>()
    .selectFrom(DEFAULT_MIGRATION_TABLE)
    .select('name')
    .execute()
  const unknown = rows.map((row) => row.name).filter((name) => !known.includes(name))
  if (unknown.length === 0) return
  throw new Error(
    `this database was changed by a newer version of sluice (its schema has "${unknown.sort().join('", "')}", ` +
      `this version knows up to "${known.at(-1)}"): start that version, or go back to a copy made before it`,
  )
}
