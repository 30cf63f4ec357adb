import type { DatabaseSync } from 'node:sqlite'
import { SQLITE_TYPES } from '../migrations/schema/table.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { createKysely } from './dialect.ts'

/**
 * Migrates the schema. This is a separate module, so that Kysely is loaded only when a migration is needed.
 */
export function migrateConnection(connection: DatabaseSync): Promise<void> {
  return migrateToLatest(createKysely(connection), SQLITE_TYPES)
}
