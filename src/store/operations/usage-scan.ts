import type { Expression, ExpressionBuilder, SqlBool } from 'kysely'
import type { UsageFilter } from '../../domain/usage-entry.ts'
import type { Database } from '../schema.ts'
import { firstIdOf } from '../usage-id.ts'
import type { Db } from './operation.ts'

/**
 * No call runs for longer. The log is in the order of the calls' starts, and what is asked for is when they
 * ended; so much earlier an answer that ended in time may have begun.
 */
const MAX_CALL_MS = 6 * 3_600_000
/**
 * A crash may leave a call behind for longer: a user's own rows are found by their time if it was settled
 * within so much.
 */
const MAX_RECOVERY_DELAY_MS = 7 * 24 * 3_600_000

/** A row of the log: where a reader stopped. */
export interface UsageCursor {
  readonly id: string
  readonly endedMs: number
}

/** So many rows of the log, newest first, that an index finds: those of a user, of a time, or all. */
export interface UsageScan {
  readonly filter: UsageFilter
  /** Begins after this row; null = with the newest. */
  readonly after: UsageCursor | null
  /**
   * At most so many rows are looked at, whether they are meant or not: this is what bounds the work of one
   * read.
   */
  readonly maxRows: number
}

/** A stretch whose last row is known. */
export interface BoundedScan extends UsageScan {
  /** Its last row, where the log goes on behind it; null if it does not. */
  readonly end: UsageCursor | null
}

type Rows = ExpressionBuilder<Pick<Database, 'tokens' | 'usage_log'>, 'usage_log'>

/**
 * Finds the last row of a stretch, and whose rows it is of; null where the filter names a user whom nobody
 * knows.
 */
export async function boundScan(db: Db, stretch: UsageScan): Promise<BoundedScan | null> {
  const filter = await withUser(db, stretch.filter)
  if (!filter) return null
  const open: BoundedScan = { ...stretch, filter, end: null }
  let query = db
    .selectFrom('usage_log')
    .select(['id', 'ended_ms'])
    .where((eb) => withinScan(eb, open))
    .offset(stretch.maxRows - 1)
    .limit(1)
  if (filter.userId !== undefined) query = query.orderBy('ended_ms', 'desc')
  const end = await query.orderBy('id', 'desc').executeTakeFirst()
  return { ...open, end: end ? { id: end.id, endedMs: end.ended_ms } : null }
}

/** The ids of the rows that are meant, within a stretch. */
export function matchingRows(db: Db, stretch: BoundedScan) {
  return db
    .selectFrom('usage_log')
    .where((eb) => withinScan(eb, stretch))
    .where((eb) => matchesFilter(eb, stretch.filter))
}

/** The filter with the id of the user whom it names, for the index. */
export async function withUser(db: Db, filter: UsageFilter): Promise<UsageFilter | null> {
  const { username } = filter
  if (username === undefined) return filter
  const user = await db.selectFrom('users').select('id').where('username', '=', username).executeTakeFirst()
  return user ? { ...filter, userId: user.id } : null
}

/**
 * What an index answers: `usage_log_by_user` for a user's rows, else the primary key. Each side has one bound
 * and no more, as SQLite would look for the first of two and read all rows up to the other; where the stretch
 * begins or ends at a row, that row is the closer bound.
 */
export function withinScan(eb: Rows, stretch: BoundedScan): Expression<SqlBool> {
  const { filter, after, end } = stretch
  const { userId, fromMs, beforeMs } = filter
  if (userId === undefined) return withinIds(eb, stretch)
  const bounds: Expression<SqlBool>[] = [withinIds(eb, stretch), eb('usage_log.user_id', '=', userId)]
  if (after) bounds.push(eb('usage_log.ended_ms', '<=', after.endedMs), pastCursor(eb, '<', after))
  else if (beforeMs !== undefined) bounds.push(eb('usage_log.ended_ms', '<', beforeMs))
  if (end)
    bounds.push(
      eb('usage_log.ended_ms', '>=', end.endedMs),
      eb.or([eb('usage_log.id', '=', end.id), pastCursor(eb, '>', end)]),
    )
  else if (fromMs !== undefined) bounds.push(eb('usage_log.ended_ms', '>=', fromMs))
  return eb.and(bounds)
}

/**
 * Between which ids the rows of a stretch are: what tells PostgreSQL in which partitions. A user's rows are
 * in the order in which the calls ended, so that for them a row is a bound by its time only.
 */
export function withinIds(eb: Rows, { filter, after, end }: BoundedScan): Expression<SqlBool> {
  const { userId, fromMs, beforeMs, id } = filter
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
  const lastMs = after ? after.endedMs + 1 : beforeMs
  const firstMs = end?.endedMs ?? fromMs
  if (lastMs !== undefined) before(firstIdOf(lastMs))
  if (firstMs !== undefined) from(firstIdOf(firstMs - MAX_RECOVERY_DELAY_MS))
  return eb.and(bounds)
}

// Of rows that ended in the same millisecond.
function pastCursor(eb: Rows, side: '<' | '>', { id, endedMs }: UsageCursor): Expression<SqlBool> {
  return eb.or([eb('usage_log.ended_ms', side, endedMs), eb('usage_log.id', side, id)])
}

/** What is left to look at in each row. */
export function matchesFilter(eb: Rows, filter: UsageFilter): Expression<SqlBool> {
  const { userId, fromMs, beforeMs, tokenName, model, channel, group } = filter
  const wanted: Expression<SqlBool>[] = []
  // Of a user's rows the index has seen to it.
  if (userId === undefined && fromMs !== undefined) wanted.push(eb('usage_log.ended_ms', '>=', fromMs))
  if (userId === undefined && beforeMs !== undefined) wanted.push(eb('usage_log.ended_ms', '<', beforeMs))
  if (tokenName !== undefined)
    wanted.push(
      eb('token_id', 'in', eb.selectFrom('tokens').select('tokens.id').where('tokens.name', '=', tokenName)),
    )
  if (model !== undefined) wanted.push(eb('model', '=', model))
  if (channel !== undefined) wanted.push(eb('channel', '=', channel))
  if (group !== undefined) wanted.push(eb('usage_log.group_name', '=', group))
  return eb.and(wanted)
}
