import { type Kysely, sql } from 'kysely'
import { setTimeout as delay } from 'node:timers/promises'
import type { ChangeOrigin } from '../../domain/audit.ts'
import { appendAuditEntries } from '../audit/append-audit-entries.ts'
import { secretState } from '../operations/secret-state.ts'
import type { Db } from '../operations/operation.ts'
import { sealLookupKey, settleSecrets } from '../secret-state.ts'
import type { SecretKeys, Secrets } from '../secrets.ts'
import { countOldRows, resealTable, type RunTransaction } from './reseal-table.ts'
import type { SealedTable } from './sealed-tables.ts'

/** Interval and maximum time, in milliseconds, of waiting until running nodes have followed a change. */
const POLL_MS = 200
const FOLLOW_MS = 30_000

/** A database with encrypted values: the main one, and the file with the keys of the content log. */
export interface SealedDatabase {
  readonly db: Kysely<never>
  readonly transaction: RunTransaction
  readonly tables: readonly SealedTable[]
}

/** The main database. */
export interface ChangedDatabase extends SealedDatabase {
  /** Names of the nodes that run on the database; undefined if it is not shared. */
  readonly liveNodes: (() => Promise<readonly string[]>) | undefined
  /** Called in the transaction that ends the change. */
  readonly onFinish: (db: Db, secrets: SecretKeys) => Promise<void>
}

/** What a change of the secret has done. */
export interface SecretChangeReport {
  /** Whether the database has the new secret alone now. */
  readonly finished: boolean
  /** Number of values that this run encrypted anew. */
  readonly resealed: number
  /** Rows whose values could not be decrypted, and were left as they are. */
  readonly unreadable: readonly string[]
  /** Nodes that run on the database. */
  readonly nodes: readonly string[]
  /** The file in which the old secret stays, if this run replaced that of the data folder. */
  readonly old_secret_file?: string | undefined
}

/** What a change of the secret needs. */
export interface SecretChangeOptions {
  /** Settled secrets: `settleSecrets`. */
  readonly secrets: Secrets
  readonly database: ChangedDatabase
  /** Further databases with encrypted values. */
  readonly others: readonly SealedDatabase[]
  /** `Secrets.check` of the new secret. */
  readonly newCheck: string
  /** Keys of the old secret. */
  readonly old: SecretKeys
  /** Ends the change even if nodes run. */
  readonly finish: boolean
  /** Called once the database is known to change to the new secret, before anything is encrypted with it. */
  readonly keepNew: () => void
  readonly origin: ChangeOrigin
  readonly onProgress: (done: number, total: number) => void
}

/**
 * Changes the secret of a database: begins the change, or goes on with it, and encrypts all values anew. Ends the
 * change if no node runs, or with `finish`. Each step is a transaction, and finds what earlier runs have done, so that
 * the process may be killed at any point. `docs/security.md: Change the secret`.
 */
export async function changeSecret(options: SecretChangeOptions): Promise<SecretChangeReport> {
  const { secrets, database, newCheck, finish } = options
  const db = database.db as unknown as Db
  const nodes = (await database.liveNodes?.()) ?? []
  const state = await secretState(db)
  if (state.nextCheck === null) {
    // A node that was suspended over the end of the change may have written one more value with the old secret.
    if (state.keyCheck === newCheck) {
      options.keepNew()
      const both = { ...secrets, other: options.old }
      return { finished: true, ...(await resealAll({ ...options, secrets: both })), nodes }
    }
    if (finish) throw new Error('no change of the secret is under way: begin one with "sluice secret change"')
    await requirePrepared(db, nodes, newCheck)
    options.keepNew()
    await begin(options)
    settleSecrets(secrets, await secretState(db))
  } else if (state.nextCheck !== newCheck) {
    throw new Error(
      'the secret of this database is being changed to another one than GATEWAY_SECRET_NEW: end that change first, with ' +
        'the same GATEWAY_SECRET_NEW as it was begun with',
    )
  } else options.keepNew()
  if (finish || nodes.length === 0) await untilNodes(db, database, ({ key_check }) => key_check === newCheck)
  const { resealed, unreadable } = await resealAll(options)
  if (!finish && nodes.length > 0) return { finished: false, resealed, unreadable, nodes }
  await end(options)
  settleSecrets(secrets, await secretState(db))
  await untilNodes(db, database, ({ other_check }) => other_check === null)
  return { finished: true, resealed, unreadable, nodes }
}

async function begin({ secrets, database, origin }: SecretChangeOptions): Promise<void> {
  const next = secrets.other
  if (!next) throw new Error('set GATEWAY_SECRET_NEW to the new secret')
  const values = { next_check: next.check, lookup_cipher: sealLookupKey(secrets, next) }
  await database.transaction(async (transaction) => {
    const db = transaction as unknown as Db
    await db
      .insertInto('secret_state')
      .values({ id: 1, ...values })
      .onConflict((on) => on.column('id').doUpdateSet(values))
      .execute()
    await appendAuditEntries(db, origin, [entry('secret.change')])
  })
}

async function end({ secrets, database, origin }: SecretChangeOptions): Promise<void> {
  await database.transaction(async (transaction) => {
    const db = transaction as unknown as Db
    await db.updateTable('store_identity').set({ key_check: secrets.check }).execute()
    await db.updateTable('secret_state').set({ next_check: null }).execute()
    await database.onFinish(db, secrets)
    await appendAuditEntries(db, origin, [entry('secret.finish')])
  })
}

function entry(action: string) {
  return { action, object: { kind: 'secret', id: null, name: 'GATEWAY_SECRET' }, changes: [] } as const
}

async function resealAll({
  secrets,
  database,
  others,
  onProgress,
}: SecretChangeOptions): Promise<Pick<SecretChangeReport, 'resealed' | 'unreadable'>> {
  let total = 0
  for (const { db, tables } of [database, ...others])
    for (const table of tables) total += await countOldRows(db, table, secrets)
  let done = 0
  const unreadable: string[] = []
  for (const { db, transaction, tables } of [...others, database])
    for (const table of tables) {
      const onRows = (rows: number): void => onProgress((done += rows), Math.max(done, total))
      unreadable.push(...(await resealTable(table, { db, transaction, secrets, onRows })))
    }
  return { resealed: done - unreadable.length, unreadable }
}

interface NodeSecrets {
  readonly node: string
  readonly key_check: string
  readonly other_check: string | null
}

async function requirePrepared(db: Db, nodes: readonly string[], newCheck: string): Promise<void> {
  const unprepared = await nodesUnlike(db, nodes, ({ other_check }) => other_check === newCheck)
  if (unprepared.length === 0) return
  throw new Error(
    `these nodes do not know the new secret: ${unprepared.join(', ')}. Set GATEWAY_SECRET_NEW on each node, beside ` +
      'GATEWAY_SECRET, and restart the nodes one after another; then run this command again. A node that has crashed ' +
      'counts as running for a minute',
  )
}

/** Waits until the running nodes have followed a step of the change. */
async function untilNodes(
  db: Db,
  { liveNodes }: ChangedDatabase,
  hasFollowed: (secrets: NodeSecrets) => boolean,
): Promise<void> {
  if (!liveNodes) return
  const endMs = performance.now() + FOLLOW_MS
  for (;;) {
    const behind = await nodesUnlike(db, await liveNodes(), hasFollowed)
    if (behind.length === 0) return
    if (performance.now() > endMs)
      throw new Error(
        `these nodes have not followed the change of the secret: ${behind.join(', ')}. Restart them with GATEWAY_SECRET ` +
          'and GATEWAY_SECRET_NEW, or stop them, and run this command again',
      )
    await delay(POLL_MS)
  }
}

async function nodesUnlike(
  db: Db,
  nodes: readonly string[],
  isAs: (secrets: NodeSecrets) => boolean,
): Promise<readonly string[]> {
  const rows = nodes.length > 0 ? await db.selectFrom('node_secrets').selectAll().execute() : []
  const alike = new Set(rows.filter(isAs).map(({ node }) => node))
  return nodes.filter((node) => !alike.has(node))
}

/** Names of the nodes that have reported to a shared database within the last minute. */
export async function liveNodesOf(db: Kysely<never>): Promise<readonly string[]> {
  const { rows } = await sql<{ node: string }>`
    select node from nodes where expires > now() order by node`.execute(db)
  return rows.map(({ node }) => node)
}
