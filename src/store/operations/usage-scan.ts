import type { Expression, ExpressionBuilder, SqlBool } from 'kysely'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import type { Database } from '../schema.ts'
import { firstIdOf } from '../usage-id.ts'
import type { Db } from './operation.ts'

/**
 * Maximum duration of a call. Ids sort by the start of a call but filters refer to its end, so the scan
 * begins this much earlier.
 */
const MAX_CALL_MS = 6 * 3_600_000
/** Maximum time from the start of a call to its recovery after a crash that a scan by user covers. */
const MAX_RECOVERY_DELAY_MS = 7 * 24 * 3_600_000

/** Position in the usage log: the row at which a scan stopped. */
export interface UsageCursor {
  readonly id: string
  readonly ended_ms: number
}

/** Scan of the usage log, newest first, over an index: of a user, of a time range, or of all rows. */
export interface UsageScan {
  readonly filter: UsageFilter
  /** Starts after this row; null = at the newest. */
  readonly after: UsageCursor | null
  /** Maximum number of rows to read, matching or not, which bounds the work of one operation. */
  readonly maxRows: number
}

/** Scan whose last row is known. */
export interface BoundedScan extends UsageScan {
  /** Last row of the scan; null if the scan reaches the end of the log. */
  readonly end: UsageCursor | null
}

type Rows = ExpressionBuilder<Pick<Database, 'tokens' | 'usage_log'>, 'usage_log'>

/** Finds the last row of a scan, and the id of the user in its filter; null if that user is unknown. */
export async function boundScan(db: Db, scan: UsageScan): Promise<BoundedScan | null> {
  const filter = await withUser(db, scan.filter)
  if (!filter) return null
  const open: BoundedScan = { ...scan, filter, end: null }
  let query = db
    .selectFrom('usage_log')
    .select(['id', 'ended_ms'])
    .where((eb) => withinScan(eb, open))
    .offset(scan.maxRows - 1)
    .limit(1)
  if (filter.user_id !== undefined) query = query.orderBy('ended_ms', 'desc')
  const end = await query.orderBy('id', 'desc').executeTakeFirst()
  return { ...open, end: end ? { id: end.id, ended_ms: end.ended_ms } : null }
}

/** Selects the matching rows of a scan. */
export function matchingRows(db: Db, scan: BoundedScan) {
  return db
    .selectFrom('usage_log')
    .where((eb) => withinScan(eb, scan))
    .where((eb) => matchesFilter(eb, scan.filter))
}

/** Adds the id of the user that the filter names, for the index; null if the user is unknown. */
export async function withUser(db: Db, filter: UsageFilter): Promise<UsageFilter | null> {
  const { username } = filter
  if (username === undefined) return filter
  const user = await db.selectFrom('users').select('id').where('username', '=', username).executeTakeFirst()
  return user ? { ...filter, user_id: user.id } : null
}

/**
 * Condition on the index: `usage_log_by_user` for a user's rows, else the primary key. Has one bound per side
 * only, because SQLite would use the first of two and read all rows up to the other; a cursor is the tighter
 * bound.
 */
export function withinScan(eb: Rows, scan: BoundedScan): Expression<SqlBool> {
  const { filter, after, end } = scan
  const { user_id: userId, fromMs, beforeMs } = filter
  if (userId === undefined) return withinIds(eb, scan)
  const bounds: Expression<SqlBool>[] = [withinIds(eb, scan), eb('usage_log.user_id', '=', userId)]
  if (after) bounds.push(eb('usage_log.ended_ms', '<=', after.ended_ms), pastCursor(eb, '<', after))
  else if (beforeMs !== undefined) bounds.push(eb('usage_log.ended_ms', '<', beforeMs))
  if (end)
    bounds.push(
      eb('usage_log.ended_ms', '>=', end.ended_ms),
      eb.or([eb('usage_log.id', '=', end.id), pastCursor(eb, '>', end)]),
    )
  else if (fromMs !== undefined) bounds.push(eb('usage_log.ended_ms', '>=', fromMs))
  return eb.and(bounds)
}

/**
 * Condition on the ids of a scan, from which PostgreSQL derives the partitions. A user's rows are scanned by
 * the end of calls, so there a cursor bounds ids through its time only.
 */
export function withinIds(eb: Rows, { filter, after, end }: BoundedScan): Expression<SqlBool> {
  const { user_id: userId, fromMs, beforeMs, id } = filter
  const bounds: Expression<SqlBool>[] = []
  const from = (bound: string): unknown => bounds.push(eb('usage_log.id', '>=', bound))
  const before = (bound: string): unknown => bounds.push(eb('usage_log.id', '<', bound))
  if (id !== undefined) bounds.push(eb('usage_log.id', '=', id))
  if (userId === undefined) {
    if (after) before(after.id)
    else if (beforeMs !== undefined) before(firstIdOf(beforeMs))
    if (end) from(end.id)
    else if (fromMs !== undefined) from(firstIdOf(fromMs - MAX_CALL_MS))
    return eb.and(bounds)
  }
  const lastMs = after ? after.ended_ms + 1 : beforeMs
  const firstMs = end?.ended_ms ?? fromMs
  if (lastMs !== undefined) before(firstIdOf(lastMs))
  if (firstMs !== undefined) from(firstIdOf(firstMs - MAX_RECOVERY_DELAY_MS))
  return eb.and(bounds)
}

// Rows that ended in the same millisecond are ordered by id.
function pastCursor(eb: Rows, side: '<' | '>', { id, ended_ms: endedMs }: UsageCursor): Expression<SqlBool> {
  return eb.or([eb('usage_log.ended_ms', side, endedMs), eb('usage_log.id', side, id)])
}

/** Condition of the filter that the index does not cover. */
export function matchesFilter(eb: Rows, filter: UsageFilter): Expression<SqlBool> {
  const { user_id: userId, fromMs, beforeMs, token_name, model, channel, group, reasons } = filter
  const wanted: Expression<SqlBool>[] = []
  // For a user's rows, the index covers the times.
  if (userId === undefined && fromMs !== undefined) wanted.push(eb('usage_log.ended_ms', '>=', fromMs))
  if (userId === undefined && beforeMs !== undefined) wanted.push(eb('usage_log.ended_ms', '<', beforeMs))
  if (token_name !== undefined)
    wanted.push(
      eb('token_id', 'in', eb.selectFrom('tokens').select('tokens.id').where('tokens.name', '=', token_name)),
    )
  if (model !== undefined) wanted.push(eb('model', '=', model))
  if (channel !== undefined) wanted.push(eb('channel', '=', channel))
  if (group !== undefined) wanted.push(eb('usage_log.group_name', '=', group))
  if (reasons !== undefined) wanted.push(eb('reason', 'in', reasons))
  return eb.and(wanted)
}
