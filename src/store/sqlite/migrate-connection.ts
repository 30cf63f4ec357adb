import type { DatabaseSync } from 'node:sqlite'
import { SQLITE_TYPES } from '../migrations/column-types.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { kyselyOver } from './dialect.ts'

/**
 * Brings the schema up to date. This module brings Kysely along, and is loaded where something is to be done.
 */
export function migrateConnection(connection: DatabaseSync): Promise<void> {
  return migrateToLatest(kyselyOver(connection), SQLITE_TYPES)
}
