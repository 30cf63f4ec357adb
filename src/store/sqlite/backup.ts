import { Service } from '../../ipc/service.ts'
import { startThread } from '../../ipc/start-thread.ts'
import { DATABASE_ERRORS } from './failure.ts'

/** Options for copying a database. */
export interface BackupOptions {
  /** Path of the database file. */
  readonly path: string
  /** Path of the copy. The file must be empty or missing. */
  readonly target: string
}

/** The requests of the thread. */
export interface BackupRequests {
  copy(options: BackupOptions): void
}

/**
 * Copies a committed snapshot of the database. Uses a thread and a separate connection, so that neither calls
 * nor writes wait. The copy is a single file, which is durable when this resolves. Rejects with a sentence
 * for the operator.
 */
export async function copyDatabase(options: BackupOptions): Promise<void> {
  const service = new Service<BackupRequests>({
    name: 'sluice backup',
    start: (name) => startThread('./backup-worker', import.meta.url, { name }),
    keepsAlive: true,
    errors: DATABASE_ERRORS,
  })
  try {
    await service.request('copy', options)
  } finally {
    await service.close()
  }
}
