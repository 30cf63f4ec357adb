import { closeSync, openSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** How long a connection waits for another program that has the file locked. */
const BUSY_TIMEOUT_MS = 2000

/**
 * Whether whoever wrote to the file last closed it, and so folded its log into it. To be asked before it is
 * opened.
 */
export function wasClosedCleanly(path: string): boolean {
  return (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0
}

/** The one connection that writes. A commit on it is durable when it returns, power cuts included. */
export function openForWriting(path: string): DatabaseSync {
  // Made by us, so that it is nobody else's to read; SQLite gives its companions the same mode.
  closeSync(openSync(path, 'a', 0o600))
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true })
  db.exec('PRAGMA journal_mode = WAL')
  db.exec('PRAGMA synchronous = FULL')
  db.exec('PRAGMA journal_size_limit = 67108864')
  db.exec('PRAGMA trusted_schema = OFF')
  return db
}

/** A connection that sees what is committed, and can change nothing. */
export function openForReading(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, readOnly: true })
  db.exec('PRAGMA trusted_schema = OFF')
  return db
}
