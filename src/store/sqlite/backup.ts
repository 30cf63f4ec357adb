import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { deserializeError } from './failure.ts'
import type { SerializedError } from './messages.ts'

/** Options for copying a database, which are passed to the thread. */
export interface BackupOptions {
  /** Path of the database file. */
  readonly path: string
  /** Path of the copy. The file must be empty or missing. */
  readonly target: string
}

// The extension is .ts in the source and .js in the build.
const WORKER = new URL(`./backup-worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url)

/**
 * Copies a committed snapshot of the database. Uses a thread and a separate connection, so that neither calls
 * nor writes wait. The copy is a single file, which is durable when this resolves. Rejects with a sentence
 * for the operator.
 */
export async function copyDatabase(options: BackupOptions): Promise<void> {
  const worker = new Worker(WORKER, {
    workerData: options,
    name: 'sluice backup',
    execArgv: [],
  })
  const failure = await new Promise<SerializedError | undefined>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the thread that copies the database has ended')))
  })
  if (failure) throw deserializeError(failure)
}
