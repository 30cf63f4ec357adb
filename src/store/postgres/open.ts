import { setTimeout as delay } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { auditedWrite } from '../audit/audited-write.ts'
import { POSTGRES_TYPES } from '../migrations/schema/table.ts'
import { migrateToLatest, stepsRun } from '../migrations/migrate.ts'
import { isSchemaCurrent, type ReportProgress, STEPS } from '../migrations/steps.ts'
import { type EntryToKeep, ownerOf } from '../operations/kept.ts'
import type { Db } from '../operations/operation.ts'
import * as reads from '../operations/reads.ts'
import type * as writes from '../operations/writes.ts'
import type { Database } from '../row-types.ts'
import { settleSecrets } from '../secret-state.ts'
import { databaseMessageKey, type SecretKeys, type Secrets } from '../secrets.ts'
import type { RowStore } from '../store.ts'
import { createPostgresKysely } from './dialect.ts'
import { isRetryableConflict, isLockTimeout, mapDatabaseError } from './failure.ts'
import { probeTimeouts, TIMEOUTS_WHILE_IDLE } from './liveness-probe.ts'
import { maintainUsageLog, type UsageLogMaintenance } from './maintain-usage-log.ts'
import { CONNECT_TIMEOUT_MS, connectionPool, type PoolTimeouts } from './pool.ts'
import { refuseTransactionPooler } from './refuse-transaction-pooler.ts'
import { ensureRelayRole } from './relay-role.ts'
import { WriteLines } from './write-lines.ts'

/** Maximum number of attempts at a write that conflicts with other transactions. */
const MAX_ATTEMPTS = 8
/**
 * Number of attempts after which a write locks the tables whose rows many transactions update, so that these
 * cannot conflict with it: reports of nodes update users and tokens, whatever is kept updates its sums.
 */
const ATTEMPTS_WITHOUT_LOCK = 4
/**
 * Milliseconds to wait for a row that another session has locked. A write that waits has one of the few connections,
 * which the reads and writes of other accounts need.
 */
const LOCK_WAIT_MS = 1_000
/**
 * Milliseconds to wait for the lock on these tables. They are few, because all reports of nodes wait
 * behind the write that requests this lock.
 */
const LOCK_TIMEOUT_MS = 500
/**
 * Maximum random pause before the first retry, in milliseconds. It increases by this amount with each further
 * retry.
 */
const RETRY_JITTER_MS = 10
/**
 * Timeout in milliseconds of statements of migrations and of the maintenance of partitions, which may move
 * many rows.
 */
const MAINTENANCE_TIMEOUT_MS = 3_600_000

type AnyOperation = (db: Db, input: unknown, secrets: Secrets) => Promise<unknown>

const keysOfUser = (userId: number): string => `keys of user ${userId}`

const keptOf = ({ kind, userId }: Pick<EntryToKeep, 'kind' | 'userId'>): string =>
  `kept of ${ownerOf(kind, userId)}`

/**
 * Writes that conflict with each other, because they read rows that the others change: those with the same text run one
 * after another, at a node (`WriteLines`) and on all nodes (by a lock of PostgreSQL). Otherwise one client could make them conflict until they lock tables for which all nodes
 * wait.
 */
const QUEUES: {
  readonly [Name in keyof typeof writes]?: (input: Parameters<(typeof writes)[Name]>[1]) => string
} = {
  changeToken: ({ userId }) => keysOfUser(userId),
  createToken: ({ user_id }) => keysOfUser(user_id),
  createUserToken: ({ token }) => keysOfUser(token.user_id),
  deleteTokens: ({ userId }) => keysOfUser(userId),
  enableOrDisableToken: ({ userId }) => keysOfUser(userId),
  recordRefusedSignIn: () => 'refused sign-ins',
  rotateToken: ({ userId }) => keysOfUser(userId),
  storeKept: keptOf,
  storeKeptFacts: ({ entries: [first] }) => (first ? keptOf(first) : 'nothing'),
}

const READS = { ...reads } as Readonly<Record<string, AnyOperation>>

/** Operations on a database that several nodes share, with facts about its bank. */
export interface SharedRows extends RowStore {
  /** Identifier of the bank. */
  readonly bankId: string
  /** Whether connections to the bank can use the restricted role `RELAY_ROLE`. */
  readonly hasRelayRole: boolean
  /**
   * Drops the partitions of usage rows older than this number of days, and creates the partitions for the
   * next days. Ends early after a lock timeout; the next run then continues.
   */
  maintainUsageLog(retentionDays: number, signal?: AbortSignal): Promise<UsageLogMaintenance>
}

/**
 * Opens the database at a `postgres:` URL and migrates its schema. Rejects with a sentence for the operator
 * if the database is unreachable, was created with another secret, or was migrated by a newer version. The
 * store has no writes of calls, because every node stores calls in its local file first. `timeoutMs` is the
 * timeout for connecting and of the server's signs of life, for machines that may be slow. `report` gets the progress of a
 * long migration.
 */
export async function openPostgresStore(options: {
  readonly url: string
  readonly secrets: Secrets
  readonly timeoutMs?: number
  readonly report?: ReportProgress | undefined
}): Promise<SharedRows> {
  const { url, secrets, timeoutMs } = options
  await refuseUnfitPooler(url)
  const known = await prepareDatabase(options)
  const db = createPostgresKysely(connectionPool(url, { lockMs: LOCK_WAIT_MS, ...patience(timeoutMs) }))
  const lines = new WriteLines(timeoutMs ?? CONNECT_TIMEOUT_MS)
  const write = (name: keyof typeof writes, input: unknown): Promise<unknown> => {
    const queue = (QUEUES[name] as ((given: unknown) => string) | undefined)?.(input)
    if (queue === undefined) return repeatConflicts(db, name, input, secrets)
    return lines.run(queue, () => writeInQueue(db, queue, name, input, secrets))
  }
  return {
    ...known,
    read: (name, ...[input]) => read(db, READS[name]!, input, secrets) as never,
    write: (name, ...[input]) => write(name, input) as never,
    maintainUsageLog: (retentionDays, signal) =>
      withMaintenanceConnection(url, (upkeep) => maintainUsageLog(upkeep, retentionDays, signal), timeoutMs),
    close: () => db.destroy(),
  }
}

/** Whether the database is that of a gateway, with a secret. Changes nothing. Rejects as a start does if it is not. */
export async function isDatabaseOfGateway(url: string): Promise<boolean> {
  await refuseUnfitPooler(url)
  const look = async (db: Kysely<Database>) => {
    const run = await stepsRun(db, POSTGRES_TYPES)
    if (run.length === 0) return false
    isSchemaCurrent(run)
    return (await db.selectFrom('store_identity').select('id').execute()).length > 0
  }
  return withMaintenanceConnection(url, look, undefined)
}

// Before anything is set on a connection, which such a pooler gives to others.
function refuseUnfitPooler(url: string): Promise<void> {
  return refuseTransactionPooler(url).catch((error) => {
    throw mapDatabaseError(error)
  })
}

/** Timeouts of a pool, where they are not the usual ones. */
function patience(ms: number | undefined): Pick<PoolTimeouts, 'connectMs' | 'probing'> {
  const probing = probeTimeouts(ms)
  return probing ? { connectMs: probing.connectMs, probing } : {}
}

function prepareDatabase({
  url,
  secrets,
  timeoutMs,
  report,
}: Parameters<typeof openPostgresStore>[0]): Promise<Pick<SharedRows, 'bankId' | 'hasRelayRole'>> {
  const prepare = async (db: Kysely<Database>) => {
    await migrateToLatest(db, POSTGRES_TYPES, STEPS, report)
    await maintainUsageLog(db, undefined)
    await db
      .insertInto('store_identity')
      .values({ id: 1, key_check: secrets.check })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute()
    const identity = await db
      .withTables<{ store_identity: { bank: string } }>()
      .selectFrom('store_identity')
      .select('bank')
      .executeTakeFirst()
    settleSecrets(secrets, await reads.secretState(db))
    await storeMessageKey(db, secrets)
    return { bankId: identity?.bank ?? '', hasRelayRole: await ensureRelayRole(db) }
  }
  return withMaintenanceConnection(url, prepare, timeoutMs)
}

// Uses separate connections, because maintenance needs a longer statement timeout.
async function withMaintenanceConnection<Result>(
  url: string,
  work: (db: Kysely<Database>) => Promise<Result>,
  timeoutMs: number | undefined,
): Promise<Result> {
  const timeouts = { statementMs: MAINTENANCE_TIMEOUT_MS, probing: TIMEOUTS_WHILE_IDLE }
  const db = createPostgresKysely(connectionPool(url, { ...timeouts, ...patience(timeoutMs) }))
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

// The advisory lock is one of the session and not of the transaction, which would begin before the lock is granted, and
// would not see what those before it have committed.
async function writeInQueue(
  db: Kysely<Database>,
  queue: string,
  name: keyof typeof writes,
  input: unknown,
  secrets: Secrets,
): Promise<unknown> {
  const key = sql`hashtextextended(${`sluice ${queue}`}, 0)`
  const inQueue = async (connection: Kysely<Database>): Promise<unknown> => {
    try {
      await sql`select pg_advisory_lock(${key})`.execute(connection)
    } catch (error) {
      // The write is correct without the lock too: it may only have to be repeated.
      if (!isLockTimeout(error)) throw error
      return repeatConflicts(connection, name, input, secrets)
    }
    try {
      return await repeatConflicts(connection, name, input, secrets)
    } finally {
      // Fails only if the connection broke, which ended the lock.
      await sql`select pg_advisory_unlock(${key})`.execute(connection).catch(() => {})
    }
  }
  try {
    return await db.connection().execute(inQueue)
  } catch (error) {
    throw mapDatabaseError(error)
  }
}

// Transactions are serializable, so that what an operation has read is still true when it commits.
async function repeatConflicts(
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
          // Other transactions could conflict with every attempt. The lock makes them wait; it is taken before
          // anything is read.
          if (attempt > ATTEMPTS_WITHOUT_LOCK) {
            await sql.raw(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`).execute(transaction)
            await sql`lock table users, tokens, kept_sums in exclusive mode`.execute(transaction)
          }
          return auditedWrite(transaction, name, input, secrets)
        })
    } catch (error) {
      const isRetryable =
        isRetryableConflict(error) || (attempt > ATTEMPTS_WITHOUT_LOCK && isLockTimeout(error))
      if (attempt === MAX_ATTEMPTS || !isRetryable) throw mapDatabaseError(error)
      await delay(Math.random() * RETRY_JITTER_MS * attempt)
    }
  }
}

/** Block size of SHA-256 in bytes, and the constants that HMAC (RFC 2104) combines with the key. */
const BLOCK_BYTES = 64
const INNER = 0x36
const OUTER = 0x5c

/**
 * Stores the key with which the database signs its messages to the nodes (in the SQL function
 * `bank_announce`).
 */
export async function storeMessageKey(db: Kysely<Database>, secrets: SecretKeys): Promise<void> {
  const key = databaseMessageKey(secrets)
  const block = (filling: number): Buffer =>
    Buffer.from(Array.from({ length: BLOCK_BYTES }, (_, index) => (key[index] ?? 0) ^ filling))
  await sql`insert into message_key values (1, ${block(INNER)}, ${block(OUTER)})
    on conflict (id) do update set inner_block = excluded.inner_block, outer_block = excluded.outer_block
    where message_key.inner_block <> excluded.inner_block`.execute(db)
}
