import type { DatabaseSync } from 'node:sqlite'
import type { Kysely } from 'kysely'
import { writes } from '../operations/writes.ts'
import type { Database } from '../schema.ts'
import type { Secrets } from '../secrets.ts'
import { kyselyOver } from './dialect.ts'

type AnyWrite = (db: Kysely<Database>, input: unknown, secrets: Secrets) => Promise<unknown>

/** Runs one operation in the transaction that is open. */
export type WriteOperation = (name: string, input: unknown) => Promise<unknown>

/**
 * The operations over Kysely. This module brings it along: 25 MB that a thread should not load before it has
 * to.
 */
export function writeOperations(connection: DatabaseSync, secrets: Secrets): WriteOperation {
  const db = kyselyOver(connection)
  return (name, input) => (writes[name as keyof typeof writes] as AnyWrite)(db, input, secrets)
}
