import type {
  AuditEntry,
  AuditFilter,
  DeclaredSetting,
  ObjectKind,
  ChangeOrigin,
} from '../../domain/audit.ts'
import type { BudgetName } from '../../domain/budget.ts'
import type { AuditLogRow } from '../row-types.ts'
import { appendAuditEntries } from '../audit/append-audit-entries.ts'
import { declaredRows, isSameRows } from '../audit/declared-rows.ts'
import { undeletedUsers, undeletedTokensOfUser } from '../account-rows.ts'
import type { Secrets } from '../secrets.ts'
import { type Db, inChunks } from './operation.ts'

const DAY_MS = 86_400_000
/** Days for which entries of the audit log are kept. */
const KEPT_DAYS = 400

/** Query for one page of the matching entries. */
interface AuditPageQuery {
  readonly filter: AuditFilter
  readonly offset: number
  readonly limit: number
}

/**
 * Query for the newest matching entries whose id is lower than `beforeId`; null begins with the newest entry.
 */
interface AuditScan {
  readonly filter: AuditFilter
  readonly beforeId: number | null
  readonly limit: number
}

/** Reads a page of matching entries, newest first, and the number of all matching entries. */
export async function auditPage(
  db: Db,
  page: AuditPageQuery,
): Promise<{ readonly total: number; readonly entries: readonly AuditEntry[] }> {
  const { total } = await matching(db, page.filter)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  const rows = await selectAuditPage(db, page).selectAll().execute()
  return { total, entries: await entriesFromRows(db, rows) }
}

/** Reads the newest matching entries with a lower id than `beforeId`; null begins with the newest entry. */
export async function auditEntriesBefore(db: Db, query: AuditScan): Promise<readonly AuditEntry[]> {
  const rows = await selectAuditEntriesBefore(db, query).selectAll().execute()
  return entriesFromRows(db, rows)
}

/** Removes at most `limit` entries that are older than `KEPT_DAYS`. Resolves to their number. */
export async function pruneAuditLog(
  db: Db,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<number> {
  const result = await db
    .deleteFrom('audit_log')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('audit_log')
        .select('id')
        .where('at_ms', '<', nowMs - KEPT_DAYS * DAY_MS)
        .limit(limit),
    )
    .executeTakeFirst()
  return Number(result.numDeletedRows)
}

/** Selects a page of matching entries, newest first. */
export function selectAuditPage(db: Db, { filter, offset, limit }: AuditPageQuery) {
  return matching(db, filter).orderBy('id', 'desc').offset(offset).limit(limit)
}

/** Selects the newest matching entries with a lower id than `beforeId`. */
export function selectAuditEntriesBefore(db: Db, { filter, beforeId, limit }: AuditScan) {
  return matching(db, filter)
    .$if(beforeId !== null, (query) => query.where('id', '<', beforeId ?? 0))
    .orderBy('id', 'desc')
    .limit(limit)
}

function matching(db: Db, { actor, kind, object, fromMs, beforeMs }: AuditFilter) {
  let query = db.selectFrom('audit_log')
  if (actor !== undefined)
    query = query.where((eb) =>
      eb.or([eb('actor', '=', actor), ...asId(actor, (id) => eb('actor_id', '=', id))]),
    )
  if (kind !== undefined) query = query.where('object_kind', '=', kind)
  if (object !== undefined)
    query = query.where((eb) =>
      eb.or([eb('object_name', '=', object), ...asId(object, (id) => eb('object_id', '=', id))]),
    )
  if (fromMs !== undefined) query = query.where('at_ms', '>=', fromMs)
  if (beforeMs !== undefined) query = query.where('at_ms', '<', beforeMs)
  return query
}

function asId<Condition>(text: string, condition: (id: number) => Condition): Condition[] {
  return /^\d{1,15}$/.test(text) ? [condition(Number(text))] : []
}

async function entriesFromRows(db: Db, rows: readonly AuditLogRow[]): Promise<AuditEntry[]> {
  const ids = rows.flatMap((row) =>
    row.object_kind === 'key' && row.object_id !== null ? [row.object_id] : [],
  )
  const owners = await inChunks([...new Set(ids)], (some) =>
    db
      .selectFrom('tokens')
      .innerJoin('users', 'users.id', 'tokens.user_id')
      .select(['tokens.id as key_id', 'users.id', 'users.username as name'])
      .where('tokens.id', 'in', some)
      .execute(),
  )
  const ownerOf = new Map(owners.map(({ key_id, ...owner }) => [key_id, owner]))
  return rows.map((row) => {
    const owner = row.object_kind === 'key' ? ownerOf.get(row.object_id ?? 0) : undefined
    return { ...entryFromRow(row), ...(owner && { owner }) }
  })
}

function entryFromRow(row: AuditLogRow): AuditEntry {
  return {
    id: row.id,
    atMs: row.at_ms,
    actorId: row.actor_id,
    actor: row.actor,
    via: row.via as ChangeOrigin['via'],
    address: row.address,
    action: row.action,
    object: { kind: row.object_kind as ObjectKind, id: row.object_id, name: row.object_name },
    changes: JSON.parse(row.changes),
  }
}

/** Maximum number of rows in one statement, because databases limit the number of parameters. */
const MAX_ROWS = 500

/**
 * Stores the settings declared in the configuration file, so that changes are detected when it is read again.
 */
export async function recordDeclaredRows(
  db: Db,
  { settings }: { readonly settings: readonly DeclaredSetting[] },
  secrets: Secrets,
): Promise<void> {
  const rows = declaredRows(settings, secrets)
  const present = await db.selectFrom('declared_settings').selectAll().execute()
  if (isSameRows(present, rows)) return
  await db.deleteFrom('declared_settings').execute()
  await inChunks(rows, (some) => db.insertInto('declared_settings').values(some).execute(), MAX_ROWS)
}

/**
 * Records that a call was refused because it might cost more than is left of a budget. The budget then counts
 * as used up, and receivers of alerts are informed, both once per period. `amount` is the budget's amount in
 * quota units; 0 if unknown.
 */
export async function recordExceededBudget(
  db: Db,
  { name, amount }: { readonly name: BudgetName; readonly amount: number },
): Promise<void> {
  const period = await db
    .selectFrom('budget_periods')
    .select(['amount', 'used'])
    .where('account', '=', name)
    .executeTakeFirst()
  const { used } = period ?? { used: 0 }
  for (const percent of [80, 100])
    await db
      .insertInto('budget_crossings')
      .values({ account: name, percent, amount: amount || (period?.amount ?? 0), used })
      .onConflict((conflict) => conflict.columns(['account', 'percent']).doNothing())
      .execute()
}

const HOUR_MS = 3_600_000
/**
 * Maximum number of refused sign-ins recorded per hour, so that an attack from many addresses cannot fill the
 * disk.
 */
const MAX_PER_HOUR = 1_000

interface RefusedSignIn {
  /** Username that was sent; undefined for other types of credentials. */
  readonly username: string | undefined
  readonly origin?: ChangeOrigin
}

/**
 * Adds a refused sign-in to the audit log. The name is recorded only if a user has it, because people
 * sometimes type their password into the wrong field.
 */
export async function recordRefusedSignIn(db: Db, { username = '', origin }: RefusedSignIn): Promise<void> {
  if (!origin) return
  const { count } = await db
    .selectFrom('audit_log')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('at_ms', '>', origin.atMs - HOUR_MS)
    .where('action', '=', 'session.refuse')
    .executeTakeFirstOrThrow()
  if (count >= MAX_PER_HOUR) return
  const user = await undeletedUsers(db)
    .select(['id', 'username'])
    .where('username', '=', username)
    .executeTakeFirst()
  const name = user?.username ?? ''
  const entry = {
    action: 'session.refuse',
    object: { kind: 'session', id: null, name },
    changes: [],
  } as const
  await appendAuditEntries(db, origin, [{ ...entry, actor: { id: user?.id ?? 0, name } }])
}

/** Secrets that are about to be shown to somebody. */
interface Reveal {
  readonly kind: 'key' | 'channel'
  readonly ids: readonly number[]
  /** Owner of the tokens. Tokens of other users are ignored. */
  readonly userId?: number
  readonly origin?: ChangeOrigin
}

/**
 * Records in the audit log that secrets are shown. This happens before a secret is read, so that none is
 * shown without an entry.
 */
export async function recordReveal(db: Db, { kind, ids, userId, origin }: Reveal): Promise<void> {
  if (!origin || ids.length === 0) return
  const rows =
    kind === 'channel'
      ? await db.selectFrom('channels').select(['id', 'name']).where('id', 'in', ids).orderBy('id').execute()
      : await undeletedTokensOfUser(db, userId ?? 0)
          .select(['id', 'name'])
          .where('id', 'in', ids)
          .orderBy('id')
          .execute()
  const entries = rows.map(({ id, name }) => ({
    action: `${kind}.reveal`,
    object: { kind, id, name },
    changes: [],
  }))
  await appendAuditEntries(db, origin, entries)
}

/** Cached answers that somebody removed: the filter that was given, and the number of answers. */
interface CacheRemoval {
  readonly userId: number | undefined
  readonly tokenId: number | undefined
  readonly model: string | undefined
  readonly removed: number
  readonly origin?: ChangeOrigin
}

/** Records the removal of cached answers in the audit log. */
export async function recordCacheRemoval(
  db: Db,
  { userId, tokenId, model, removed, origin }: CacheRemoval,
): Promise<void> {
  if (!origin) return
  const given = { user: userId, token: tokenId, model, answers: removed }
  const changes = Object.entries(given).flatMap(([field, before]) =>
    before === undefined ? [] : [{ field, before, after: null }],
  )
  const object = { kind: 'cache', id: null, name: 'answers' } as const
  await appendAuditEntries(db, origin, [{ action: 'cache.delete', object, changes }])
}

/** Records in the audit log that somebody read the content of another user's call. */
export async function recordContentRead(db: Db, { callId, origin }: Stop): Promise<void> {
  if (!origin) return
  const object = { kind: 'content', id: null, name: callId } as const
  await appendAuditEntries(db, origin, [{ action: 'content.read', object, changes: [] }])
}

/**
 * Stored content that is about to be deleted: all content of a user, or the content of one of the user's
 * tokens.
 */
interface ContentRemoval {
  readonly userId: number
  readonly username: string
  readonly tokenId: number | undefined
  /** Unix milliseconds. `toMs` is the first time that no longer belongs to the period. */
  readonly fromMs: number
  readonly toMs: number
  readonly origin?: ChangeOrigin
}

export async function recordContentDeletion(
  db: Db,
  { userId, username, tokenId, fromMs, toMs, origin }: ContentRemoval,
): Promise<void> {
  if (!origin) return
  const object = { kind: 'content', id: userId, name: username } as const
  const given = { token: tokenId, from: Math.floor(fromMs / 1000), to: Math.floor(toMs / 1000) }
  const changes = Object.entries(given).flatMap(([field, before]) =>
    before === undefined ? [] : [{ field, before, after: null }],
  )
  await appendAuditEntries(db, origin, [{ action: 'content.delete', object, changes }])
}

/** A running call that somebody stopped. */
interface Stop {
  readonly callId: string
  readonly origin?: ChangeOrigin
}

/** Records in the audit log that somebody cancelled a batch over the management API or a command. */
export async function recordBatchCancel(
  db: Db,
  { batchId, origin }: { readonly batchId: string; readonly origin?: ChangeOrigin },
): Promise<void> {
  if (!origin) return
  const object = { kind: 'batch', id: null, name: batchId } as const
  await appendAuditEntries(db, origin, [{ action: 'batch.stop', object, changes: [] }])
}

/** Records in the audit log that somebody stopped a call. */
export async function recordCallStop(db: Db, { callId, origin }: Stop): Promise<void> {
  if (!origin) return
  const object = { kind: 'call', id: null, name: callId } as const
  await appendAuditEntries(db, origin, [{ action: 'call.stop', object, changes: [] }])
}
