import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { createPrivateFile, keepPrivate } from '../private-file.ts'

/** Maximum wait for another program that has the file locked. */
const BUSY_TIMEOUT_MS = 2000

/** Whether the last writer closed the file properly, which empties its WAL. Call before opening it. */
export function wasClosedCleanly(path: string): boolean {
  return (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0
}

/** Offset of the format version in the file's header; 2 means that the file has a WAL. */
const FORMAT_OFFSET = 18
const LOGGED_FORMAT = 2

/**
 * Refuses a WAL that belongs to another file, which happens if a copy has replaced its database. SQLite would
 * write the pages of the former database over it. The copies themselves have no WAL.
 */
export function refuseForeignLog(path: string): void {
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

/** Opens the connection that writes. A commit that returned survives a power failure. */
export function openForWriting(path: string): DatabaseSync {
  // SQLite gives its additional files the same mode.
  createPrivateFile(path)
  refuseForeignLog(path)
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
  refuseForeignLog(path)
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, readOnly: true })
  db.exec('PRAGMA trusted_schema = OFF')
  return db
}
