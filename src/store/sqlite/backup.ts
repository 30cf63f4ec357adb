import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { deserializeError } from './failure.ts'
import type { SerializedError } from './messages.ts'

/** What the thread that copies is started with. */
export interface BackupOptions {
  readonly path: string
  /** An empty file, or none. */
  readonly target: string
}

// From source the neighbour is TypeScript, built it is JavaScript.
const WORKER = new URL(`./backup-worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url)

/**
 * Copies the database, as it is committed at one moment, in a thread and over a connection of its own:
 * neither calls nor writes wait for it. The copy is one file, on the disk when this resolves. Rejects with a
 * sentence for the operator.
 */
export async function copyDatabase(orders: BackupOptions): Promise<void> {
  const worker = new Worker(WORKER, { workerData: orders, name: 'sluice backup', execArgv: [] })
  const failure = await new Promise<SerializedError | undefined>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the thread that copies the database has ended')))
  })
  if (failure) throw deserializeError(failure)
}
