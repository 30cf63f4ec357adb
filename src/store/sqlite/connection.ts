import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { createPrivateFile, keepPrivate } from '../private-file.ts'

/** Maximum milliseconds to wait while another program has the file locked. */
const BUSY_TIMEOUT_MS = 2000

/**
 * Whether the last writer closed the file properly, which empties its WAL (the file with recent writes). Call
 * this before opening the file.
 */
export function wasClosedCleanly(path: string): boolean {
  return (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0
}

/** Offset of the format version in the header of a SQLite file; 2 means WAL mode. */
const FORMAT_OFFSET = 18
const LOGGED_FORMAT = 2

/**
 * Refuses a WAL file that belongs to another database. This happens if the database file was replaced by a
 * copy without removing the WAL. SQLite would then write pages of the former database into the copy. Copies
 * made by Sluice need no WAL.
 */
export function refuseForeignWal(path: string): void {
  if (wasClosedCleanly(path)) return
  const header = Buffer.alloc(FORMAT_OFFSET + 1)
  const file = openSync(path, 'r')
  try {
    const length = readSync(file, header, 0, header.length, 0)
    if (length < header.length || header[FORMAT_OFFSET] === LOGGED_FORMAT) return
  } finally {
    closeSync(file)
  }
  throw new Error(
    `${path}-wal belongs to the database that was at ${path} before: remove it and ${path}-shm, which would damage this one`,
  )
}

/** Opens the connection for writing. A commit is durable: it survives a power failure. */
export function openForWriting(path: string): DatabaseSync {
  // SQLite gives its additional files the same permissions as the database file.
  createPrivateFile(path)
  refuseForeignWal(path)
  for (const suffix of ['-wal', '-shm', '-journal']) keepPrivate(path + suffix)
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true })
  db.exec('PRAGMA journal_mode = WAL')
  db.exec('PRAGMA synchronous = FULL')
  db.exec('PRAGMA journal_size_limit = 67108864')
  db.exec('PRAGMA trusted_schema = OFF')
  return db
}

/** Opens a read-only connection, which sees only committed data. */
export function openForReading(path: string): DatabaseSync {
  refuseForeignWal(path)
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, readOnly: true })
  db.exec('PRAGMA trusted_schema = OFF')
  return db
}
