import type { DatabaseSync } from 'node:sqlite'
import type { Kysely } from 'kysely'
import { writes } from '../operations/writes.ts'
import type { Database } from '../schema.ts'
import type { Secrets } from '../secrets.ts'
import { kyselyOver } from './dialect.ts'

type AnyWrite = (db: Kysely<Database>, input: unknown, secrets: Secrets) => Promise<unknown>

/** Function that runs one operation in the open transaction. */
export type WriteOperation = (name: string, input: unknown) => Promise<unknown>

/** Binds the operations to a connection. A module of its own because Kysely takes 25 MB when loaded. */
export function writeOperations(connection: DatabaseSync, secrets: Secrets): WriteOperation {
  const db = kyselyOver(connection)
  return (name, input) => (writes[name as keyof typeof writes] as AnyWrite)(db, input, secrets)
}
