import { setTimeout as delay } from 'node:timers/promises'
import { Kysely, PostgresDialect, sql } from 'kysely'
import { refuseOtherSecret } from '../key-check.ts'
import { POSTGRES_TYPES } from '../migrations/column-types.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import type { Db } from '../operations/operation.ts'
import { reads } from '../operations/reads.ts'
import { writes } from '../operations/writes.ts'
import type { Database } from '../schema.ts'
import type { Secrets } from '../secrets.ts'
import type { Rows } from '../store.ts'
import { mapDatabaseError, isConflict } from './failure.ts'
import { type UsageLogMaintenance, maintainUsageLog } from './maintain-usage-log.ts'
import { connectionPool } from './pool.ts'
import { ensureRelayRole } from './relay-role.ts'

/**
 * Runs of one write before its conflict with others is thrown on, and how many of them hope that nobody is in
 * the way.
 */
const MAX_ATTEMPTS = 8
const ATTEMPTS_WITHOUT_LOCK = 4
/** The longest pause before the first repetition; each later one may be this much longer. */
const RETRY_JITTER_MS = 10
/** A change of the schema, or of the partitions, may have to move many rows. */
const MAINTENANCE_TIMEOUT_MS = 3_600_000

type AnyOperation = (db: Db, input: unknown, secrets: Secrets) => Promise<unknown>

/** The rows of a database that several nodes share, and what they need to know of the bank in it. */
export interface SharedRows extends Rows {
  /** Which bank it is. */
  readonly bankId: string
  /** The relay's connections can take on a role that may move money through the bank's functions only. */
  readonly hasRelayRole: boolean
  /**
   * Removes usage rows that are older than so many days, by dropping partitions, and makes those that are
   * needed next. Where others use the log for too long it ends early; what is left goes at the next run.
   */
  maintainUsageLog(keptDays: number, signal?: AbortSignal): Promise<UsageLogMaintenance>
}

/**
 * Opens the database at a `postgres:` URL and brings its schema up to date. Rejects, with a sentence for the
 * operator, if it cannot be reached, was made with another secret or changed by a newer version. The ledger's
 * own writes are not here: every node keeps them in its local file.
 */
export async function openPostgresStore(options: {
  readonly url: string
  readonly secrets: Secrets
}): Promise<SharedRows> {
  const { url, secrets } = options
  const known = await prepareDatabase(url, secrets)
  const db = kyselyOver(url)
  return {
    ...known,
    read: (name, ...[input]) => read(db, reads[name] as AnyOperation, input, secrets) as never,
    write: (name, ...[input]) => write(db, name, input, secrets) as never,
    maintainUsageLog: (keptDays, signal) => withMaintenanceConnection(url, (upkeep) => maintainUsageLog(upkeep, keptDays, signal)),
    close: () => db.destroy(),
  }
}

function kyselyOver(url: string, statementMs?: number): Kysely<Database> {
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool: connectionPool(url, statementMs) }) })
}

function prepareDatabase(
  url: string,
  secrets: Secrets,
): Promise<Pick<SharedRows, 'bankId' | 'hasRelayRole'>> {
  return withMaintenanceConnection(url, async (db) => {
    await migrateToLatest(db, POSTGRES_TYPES)
    await maintainUsageLog(db, undefined)
    await db
      .insertInto('store_identity')
      .values({ id: 1, key_check: secrets.check })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute()
    const identity = await db
      .withTables<{ store_identity: { key_check: string; bank: string } }>()
      .selectFrom('store_identity')
      .select(['key_check', 'bank'])
      .executeTakeFirst()
    refuseOtherSecret(identity?.key_check, secrets)
    return { bankId: identity?.bank ?? '', hasRelayRole: await ensureRelayRole(db) }
  })
}

// On connections of its own: it takes longer than calls may, and its user may do more.
async function withMaintenanceConnection<Result>(
  url: string,
  work: (db: Kysely<Database>) => Promise<Result>,
): Promise<Result> {
  const db = kyselyOver(url, MAINTENANCE_TIMEOUT_MS)
  try {
    return await work(db)
  } catch (error) {
    throw mapDatabaseError(error)
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
    throw mapDatabaseError(error)
  }
}

// Serializable: an operation may look before it writes, and what it saw must still be so when it is
// committed.
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
        .execute(async (transaction) => {
          // Nodes report charges all the time: who always comes between them waits for his turn, before
          // anything is looked at.
          if (attempt > ATTEMPTS_WITHOUT_LOCK) await sql`lock table users, tokens in exclusive mode`.execute(transaction)
          return (writes[name] as AnyOperation)(transaction, input, secrets)
        })
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isConflict(error)) throw mapDatabaseError(error)
      await delay(Math.random() * RETRY_JITTER_MS * attempt)
    }
  }
}
