import { flushCompileCache } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'
import type { ThreadExpectation } from './messages.ts'
import { serveDatabase } from './serve-database.ts'

// Saves compiled code for the next start now, because V8 flags that the gateway sets later would make the
// saved code invalid.
if (parentPort) serveDatabase(parentPort, flushCompileCache)
if ((workerData as ThreadExpectation | null)?.expectsMigrations)
  await Promise.all([import('./migrate-connection.ts'), import('./write-operations.ts')])
