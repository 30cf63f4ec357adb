import type { DatabaseSync } from 'node:sqlite'
import { auditedWrite } from '../audit/audited-write.ts'
import type { Secrets } from '../secrets.ts'
import { createKysely } from './dialect.ts'

/** Runs one operation in the open transaction. */
export type WriteOperation = (name: string, input: unknown) => Promise<unknown>

/**
 * Returns a function that runs operations on a connection. This is a separate module, because Kysely takes 25
 * MB of memory when loaded.
 */
export function writeOperations(connection: DatabaseSync, secrets: Secrets): WriteOperation {
  const db = createKysely(connection)
  return (name, input) => auditedWrite(db, name, input, secrets)
}
