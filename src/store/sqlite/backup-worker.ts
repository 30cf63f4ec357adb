import { closeSync, fsyncSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { serve } from '../../ipc/serve.ts'
import type { BackupOptions, BackupRequests } from './backup.ts'
import { refuseForeignWal } from './connection.ts'
import { DATABASE_ERRORS, mapDatabaseError, sqliteCode } from './failure.ts'

/**
 * Copies the database with VACUUM INTO, which reads one snapshot. In WAL mode this does not block the writer.
 * It reads every row, so damage is detected now and not when the copy is needed.
 */
function copy({ path, target }: BackupOptions): void {
  try {
    refuseForeignWal(path)
    // The database is not opened read-only, because opening it after a crash must recover its WAL.
    const source = new DatabaseSync(path, { timeout: 5000 })
    try {
      source.exec('PRAGMA trusted_schema = OFF')
      source.prepare('VACUUM INTO ?').run(target)
    } finally {
      source.close()
    }
    const file = openSync(target, 'r')
    fsyncSync(file)
    closeSync(file)
  } catch (error) {
    throw isFull(error) ? new Error('there is no room left on the disk of the copy') : mapDatabaseError(error)
  }
}

// Whether an error means that the disk of the copy is full. SQLITE_FULL can only concern that disk, because
// no other file is written.
function isFull(error: unknown): boolean {
  const SQLITE_FULL = 13
  return sqliteCode(error) === SQLITE_FULL
}

serve<BackupRequests>({ copy }, { errors: DATABASE_ERRORS })
