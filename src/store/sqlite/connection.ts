import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { createPrivateFile, keepPrivate } from '../private-file.ts'

/** Longest wait for another program that has the file locked. */
const BUSY_TIMEOUT_MS = 2000

/** Tells whether the last writer closed the file, which empties its log. Call before opening it. */
export function wasClosedCleanly(path: string): boolean {
  return (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0
}

/** Opens the connection that writes. A commit that returned survives a power failure. */
export function openForWriting(path: string): DatabaseSync {
  // SQLite gives the files beside it the same mode.
  createPrivateFile(path)
  for (const suffix of ['-wal', '-shm', '-journal']) keepPrivate(path + suffix)
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true })
  db.exec('PRAGMA journal_mode = WAL')
  db.exec('PRAGMA synchronous = FULL')
  db.exec('PRAGMA journal_size_limit = 67108864')
  db.exec('PRAGMA trusted_schema = OFF')
  return db
}

/** Opens a read-only connection, which sees committed data. */
export function openForReading(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, readOnly: true })
  db.exec('PRAGMA trusted_schema = OFF')
  return db
}
