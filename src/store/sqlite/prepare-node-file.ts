import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { HOLD } from '../../domain/records/usage.ts'
import { SQLITE_TYPES, recordColumns, tableStatement } from '../migrations/schema/table.ts'
import { refuseDamagedTables } from './prepare-database.ts'

/**
 * Format number of the file in version 0.1.0, stored in SQLite's `user_version`. Lower numbers are from
 * builds before that version.
 */
const FIRST_FORMAT = 6

// Tokens and users are in the shared database, so the holds in this file cannot refer to their tables.
const HOLDS = tableStatement(
  { name: HOLD.table, columns: { ...recordColumns(HOLD), token_id: 'integer', user_id: 'integer' } },
  SQLITE_TYPES,
)

/**
 * SQL that changes the file from each format to the next. The first entry creates the tables in an empty
 * file.
 */
const STEPS = [
  `
  CREATE TABLE node (id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, bank TEXT NOT NULL) STRICT;
  ${HOLDS};
  CREATE TABLE outbox (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    token_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    quota INTEGER NOT NULL,
    call TEXT NOT NULL,
    budgets TEXT NOT NULL DEFAULT ''
  ) STRICT;
  CREATE TABLE provenance (place INTEGER PRIMARY KEY AUTOINCREMENT, call TEXT NOT NULL) STRICT;`,
] as const

const FORMAT = FIRST_FORMAT + STEPS.length - 1

/**
 * Creates the tables of a node's file and the node's name if they are missing, or migrates the file to this
 * version.
 */
export function prepareNodeFile(
  db: DatabaseSync,
  { stoppedClean }: { readonly stoppedClean: boolean },
): void {
  if (!stoppedClean) refuseDamagedTables(db, ['node', 'holds', 'outbox', 'provenance'])
  const format = db.prepare('PRAGMA user_version').get()?.['user_version'] as number
  if (format > FORMAT) {
    throw new Error(
      `the file of this node was changed by a newer version of sluice (form ${format}, this version knows ${FORMAT}): ` +
        'start that version once more and stop it, which empties the file',
    )
  }
  if (format > 0 && format < FIRST_FORMAT) {
    throw new Error(
      'the file of this node was made by a build of sluice from before version 0.1.0, which no version can read: ' +
        'remove it from DATA_DIR together with the database of that build',
    )
  }
  if (format === FORMAT) return
  db.exec('BEGIN IMMEDIATE')
  for (const step of STEPS.slice(format === 0 ? 0 : format - FIRST_FORMAT + 1)) db.exec(step)
  if (format === 0) db.prepare("INSERT INTO node VALUES (1, ?, '')").run(randomUUID())
  db.exec(`PRAGMA user_version = ${FORMAT}`)
  db.exec('COMMIT')
}
