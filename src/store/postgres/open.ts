import { setTimeout as delay } from 'node:timers/promises'
import { Kysely, PostgresDialect } from 'kysely'
import { refuseOtherSecret } from '../key-check.ts'
import { POSTGRES_TYPES } from '../migrations/column-types.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import type { Db } from '../operations/operation.ts'
import { reads } from '../operations/reads.ts'
import { writes } from '../operations/writes.ts'
import type { Database } from '../schema.ts'
import type { Secrets } from '../secrets.ts'
import type { Rows } from '../store.ts'
import { blamed, isConflict } from './failure.ts'
import { connectionPool } from './pool.ts'

/** Runs of one write before its conflict with others is thrown on. */
const ATTEMPTS = 8
/** The longest pause before the first repetition; each later one may be this much longer. */
const PAUSE_MS = 10
/** A change of the schema may have to rewrite a table. */
const MIGRATION_MS = 3_600_000

type AnyOperation = (db: Db, input: unknown, secrets: Secrets) => Promise<unknown>

/**
 * Opens the database at a `postgres:` URL and brings its schema up to date. Rejects, with a sentence for the operator, if
 * it cannot be reached, was made with another secret or changed by a newer version. The ledger's own writes are not here:
 * every node keeps them in its local file.
 */
export async function openPostgresStore(options: {
  readonly url: string
  readonly secrets: Secrets
}): Promise<Rows> {
  const { url, secrets } = options
  await prepareDatabase(url, secrets)
  const db = kyselyOver(url)
  return {
    read: (name, ...[input]) => read(db, reads[name] as AnyOperation, input, secrets) as never,
    write: (name, ...[input]) => write(db, name, input, secrets) as never,
    close: () => db.destroy(),
  }
}

function kyselyOver(url: string, statementMs?: number): Kysely<Database> {
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool: connectionPool(url, statementMs) }) })
}

async function prepareDatabase(url: string, secrets: Secrets): Promise<void> {
  const db = kyselyOver(url, MIGRATION_MS)
  try {
    await migrateToLatest(db, POSTGRES_TYPES)
    await db
      .insertInto('store_identity')
      .values({ id: 1, key_check: secrets.check })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute()
    const identity = await db.selectFrom('store_identity').select('key_check').executeTakeFirst()
    refuseOtherSecret(identity?.key_check, secrets)
  } catch (error) {
    throw blamed(error)
  } finally {
    await db.destroy()
  }
}

async function read(
  db: Kysely<Database>,
  operation: AnyOperation,
  input: unknown,
  secrets: Secrets,
): Promise<unknown> {
  try {
    return await db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
      .execute((transaction) => operation(transaction, input, secrets))
  } catch (error) {
    throw blamed(error)
  }
}

// Serializable: an operation may look before it writes, and what it saw must still be so when it is committed.
async function write(
  db: Kysely<Database>,
  name: keyof typeof writes,
  input: unknown,
  secrets: Secrets,
): Promise<unknown> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db
        .transaction()
        .setIsolationLevel('serializable')
        .execute((transaction) => (writes[name] as AnyOperation)(transaction, input, secrets))
    } catch (error) {
      if (attempt === ATTEMPTS || !isConflict(error)) throw blamed(error)
      await delay(Math.random() * PAUSE_MS * attempt)
    }
  }
}
