import { closeSync, fsyncSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { BackupOptions } from './backup.ts'
import { refuseForeignLog } from './connection.ts'
import { mapDatabaseError, serializeError, sqliteCode } from './failure.ts'
import type { SerializedError } from './messages.ts'

/**
 * Copies with VACUUM INTO, which reads one snapshot and in WAL mode does not block the writer. It reads every
 * row, so that a damaged database is detected now and not when the copy is needed.
 */
function copy({ path, target }: BackupOptions): SerializedError | undefined {
  try {
    refuseForeignLog(path)
    // Not read-only: after a crash, opening has to recover the log.
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
    return undefined
  } catch (error) {
    return serializeError(
      isFull(error) ? new Error('there is no room left on the disk of the copy') : mapDatabaseError(error),
    )
  }
}

// SQLITE_FULL concerns the copy, the only file that is written.
function isFull(error: unknown): boolean {
  const SQLITE_FULL = 13
  return sqliteCode(error) === SQLITE_FULL
}

parentPort?.postMessage(copy(workerData as BackupOptions))
