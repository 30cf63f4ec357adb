import type { AuditEntry, AuditFilter, ObjectKind, Origin } from '../../domain/audit.ts'
import type { AuditLogRow } from '../audit-table.ts'
import type { Db } from './operation.ts'

const DAY_MS = 86_400_000
/** Days that entries are kept. */
const KEPT_DAYS = 400

/** Page of the entries that match. */
interface AuditPageQuery {
  readonly filter: AuditFilter
  readonly offset: number
  readonly limit: number
}

/** The newest matching entries below an id; null = from the newest on. */
interface AuditScan {
  readonly filter: AuditFilter
  readonly beforeId: number | null
  readonly limit: number
}

/** Reads a page of matching entries, newest first, and their number. */
export async function auditPage(
  db: Db,
  page: AuditPageQuery,
): Promise<{ readonly total: number; readonly entries: readonly AuditEntry[] }> {
  const { total } = await matching(db, page.filter)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  const rows = await entryPage(db, page).selectAll().execute()
  return { total, entries: rows.map(entryFromRow) }
}

/** Reads the newest matching entries below an id; null = from the newest on. */
export async function auditBefore(db: Db, query: AuditScan): Promise<readonly AuditEntry[]> {
  const rows = await entriesBefore(db, query).selectAll().execute()
  return rows.map(entryFromRow)
}

/** Removes entries that are older than they are kept; resolves to their number. */
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
export function entryPage(db: Db, { filter, offset, limit }: AuditPageQuery) {
  return matching(db, filter).orderBy('id', 'desc').offset(offset).limit(limit)
}

/** Selects the newest matching entries below an id. */
export function entriesBefore(db: Db, { filter, beforeId, limit }: AuditScan) {
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

function entryFromRow(row: AuditLogRow): AuditEntry {
  return {
    id: row.id,
    atMs: row.at_ms,
    actorId: row.actor_id,
    actor: row.actor,
    via: row.via as Origin['via'],
    address: row.address,
    action: row.action,
    object: { kind: row.object_kind as ObjectKind, id: row.object_id, name: row.object_name },
    changes: JSON.parse(row.changes),
  }
}
