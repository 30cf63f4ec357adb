import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { refuseDamaged } from './prepare-database.ts'

/** Format of the file, stored as its `user_version`. */
const FORMAT_VERSION = 2

const SCHEMA = `
  CREATE TABLE node (id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, bank TEXT NOT NULL) STRICT;
  CREATE TABLE holds (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    token_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    prompt_amount INTEGER NOT NULL,
    progress_amount INTEGER NOT NULL,
    started_ms INTEGER NOT NULL,
    model TEXT NOT NULL,
    channel TEXT NOT NULL,
    group_name TEXT NOT NULL,
    stream INTEGER NOT NULL,
    price_version TEXT NOT NULL,
    kind TEXT NOT NULL DEFAULT ''
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE outbox (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    token_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    quota INTEGER NOT NULL,
    call TEXT NOT NULL
  ) STRICT;
  PRAGMA user_version = ${FORMAT_VERSION};
`

/** Changes of an existing file, by the format that it comes from. */
const STEPS: Readonly<Record<number, string>> = {
  1: "ALTER TABLE holds ADD COLUMN kind TEXT NOT NULL DEFAULT ''",
}

/** Creates the tables of a node's file and the node's name if they are missing, or brings them up to date. */
export function prepareNodeFile(
  db: DatabaseSync,
  { stoppedClean }: { readonly stoppedClean: boolean },
): void {
  if (!stoppedClean) refuseDamaged(db, ['node', 'holds', 'outbox'])
  const format = db.prepare('PRAGMA user_version').get()?.['user_version'] as number
  if (format > FORMAT_VERSION) {
    throw new Error(
      `the file of this node was changed by a newer version of sluice (form ${format}, this version knows ${FORMAT_VERSION}): ` +
        'start that version once more and stop it, which empties the file',
    )
  }
  if (format === FORMAT_VERSION) return
  db.exec('BEGIN IMMEDIATE')
  if (format === 0) {
    db.exec(SCHEMA)
    db.prepare("INSERT INTO node VALUES (1, ?, '')").run(randomUUID())
  } else {
    for (let from = format; from < FORMAT_VERSION; from += 1) db.exec(STEPS[from] ?? '')
    db.exec(`PRAGMA user_version = ${FORMAT_VERSION}`)
  }
  db.exec('COMMIT')
}
