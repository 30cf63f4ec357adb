import { sql } from 'kysely'
import type { AttemptEntry, Particulars } from '../../domain/call-detail.ts'
import { USAGE, type UsageEntry, type UsageLogRow } from '../../domain/records/usage.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { usageFromRow } from '../usage-counts.ts'
import type { Db } from './operation.ts'
import {
  type BoundedScan,
  boundScan,
  matchesFilter,
  matchingRows,
  type UsageCursor,
  type UsageScan,
  withinIds,
  withinScan,
} from './usage-scan.ts'

/** Maximum number of newest rows that one list shows; an earlier end of the period reaches older ones. */
const MAX_LISTED_ROWS = 100_000
/**
 * Maximum number of users whose index ranges are read one after the other; for more, all rows of the period
 * are read.
 */
const FEW_USERS = 200

const ONE = sql`1`.as('one')

/** Reads a page of matching rows, latest end first, and their number among the newest 100,000. */
export async function listUsage(
  db: Db,
  {
    filter,
    offset,
    limit,
  }: { readonly filter: UsageFilter; readonly offset: number; readonly limit: number },
): Promise<{ readonly total: number; readonly entries: readonly UsageEntry[] }> {
  const listed = await listedRows(db, filter, offset + limit)
  if (!listed) return { total: 0, entries: [] }
  const { total } = await db
    .selectFrom(listed.all.select(ONE).limit(MAX_LISTED_ROWS).as('listed'))
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  const page = await listed.latest
    .select('usage_log.id')
    .orderBy('ended_ms', 'desc')
    .orderBy('usage_log.id', 'desc')
    .offset(offset)
    .limit(Math.max(0, Math.min(limit, MAX_LISTED_ROWS - offset)))
    .execute()
  if (page.length === 0) return { total, entries: [] }
  // Literal values, from which PostgreSQL derives the partitions.
  const rows = await withNames(db)
    .where(
      'usage_log.id',
      'in',
      page.map(({ id }) => id),
    )
    .orderBy('ended_ms', 'desc')
    .orderBy('usage_log.id', 'desc')
    .execute()
  return { total, entries: rows.map(entryFromRow) }
}

/**
 * Selects all matching rows, and those that can be among the `count` with the latest ends, which avoids
 * sorting all; null if the filter names an unknown user.
 */
async function listedRows(db: Db, filter: UsageFilter, count: number) {
  if (hasTimesOnly(filter) && (await hasFewUsers(db))) {
    const scan = { filter, after: null, end: null, maxRows: MAX_LISTED_ROWS }
    const least = Math.max(filter.fromMs ?? 0, await leastLateEnd(db, scan, count))
    return { all: rowsByUser(db, scan, filter.fromMs), latest: rowsByUser(db, scan, least) }
  }
  const scan = await boundScan(db, { filter, after: null, maxRows: MAX_LISTED_ROWS })
  if (!scan) return null
  const all = matchingRows(db, scan)
  // A user's rows are read in the order of their ends.
  if (scan.filter.user_id !== undefined) return { all, latest: all }
  return { all, latest: all.where('ended_ms', '>=', await leastLateEnd(db, scan, count)) }
}

/**
 * Finds an end that the `count` latest rows reach or exceed, by looking at the `count` newest by id; 0 if
 * there is none.
 */
async function leastLateEnd(db: Db, scan: BoundedScan, count: number): Promise<number> {
  const newest = matchingRows(db, scan).select('ended_ms').orderBy('id', 'desc').limit(count).as('newest')
  const { least } = await db
    .selectFrom(newest)
    .select(({ fn }) => fn.min<number | null>('ended_ms').as('least'))
    .executeTakeFirstOrThrow()
  return least ?? 0
}

/** Whether only the end of calls is filtered, which `usage_log_by_user` covers. */
function hasTimesOnly({ fromMs: _from, beforeMs: _before, ...others }: UsageFilter): boolean {
  return Object.values(others).every((value) => value === undefined)
}

async function hasFewUsers(db: Db): Promise<boolean> {
  const users = await db
    .selectFrom('users')
    .select(ONE)
    .limit(FEW_USERS + 1)
    .execute()
  return users.length <= FEW_USERS
}

/**
 * Selects the rows of a scan that ended at `fromMs` or later over `usage_log_by_user`, whose entries are a
 * small fraction of the rows. SQLite reads the tables of a cross join in this order.
 */
function rowsByUser(db: Db, scan: BoundedScan, fromMs = 0) {
  const { beforeMs } = scan.filter
  const rows = db
    .selectFrom('users')
    .crossJoin('usage_log')
    .whereRef('usage_log.user_id', '=', 'users.id')
    .where('ended_ms', '>=', fromMs)
    .where((eb) => withinIds(eb, scan))
  return beforeMs === undefined ? rows : rows.where('ended_ms', '<', beforeMs)
}

/** A settled call with everything that explains its cost. */
export interface CallDetail {
  readonly entry: UsageEntry
  /** Undefined if no attempt was recorded, because the only one succeeded. */
  readonly attempts: readonly AttemptEntry[] | undefined
  readonly particulars: Particulars
  /** Text of its `PriceSet`; undefined for the estimated charge of a lost node. */
  readonly priceSet: string | undefined
}

/** Reads a settled call, only of one user if `userId` is given; null if there is none. */
export async function callDetail(
  db: Db,
  { id, userId }: { readonly id: string; readonly userId?: number | undefined },
): Promise<CallDetail | null> {
  const { entries } = await listUsage(db, { filter: { id }, offset: 0, limit: 1 })
  const [entry] = entries
  if (!entry || (userId !== undefined && entry.user_id !== userId)) return null
  const set = await db
    .selectFrom('price_sets')
    .select('content')
    .where('version', '=', entry.price_version)
    .where('model', '=', entry.model)
    .where('group_name', '=', entry.group)
    .executeTakeFirst()
  return {
    entry,
    attempts: entry.attempts === null ? undefined : (JSON.parse(entry.attempts) as AttemptEntry[]),
    particulars: entry.particulars === null ? {} : (JSON.parse(entry.particulars) as Particulars),
    priceSet: set?.content,
  }
}

/**
 * Reads the matching rows of one scan, newest first, and the cursor of the next scan; `next` is null at the
 * end of the log. A scan without matches may have a next one.
 */
export async function scanUsage(
  db: Db,
  given: UsageScan,
): Promise<{ readonly entries: readonly UsageEntry[]; readonly next: UsageCursor | null }> {
  const scan = await boundScan(db, given)
  if (!scan) return { entries: [], next: null }
  let query = withNames(db)
    .where((eb) => withinScan(eb, scan))
    .where((eb) => matchesFilter(eb, scan.filter))
  if (scan.filter.user_id !== undefined) query = query.orderBy('ended_ms', 'desc')
  const rows = await query.orderBy('usage_log.id', 'desc').execute()
  return { entries: rows.map(entryFromRow), next: scan.end }
}

/** Selects rows with the names of their users and API keys, deleted ones included. */
function withNames(db: Db) {
  return db
    .selectFrom('usage_log')
    .innerJoin('users', 'users.id', 'usage_log.user_id')
    .innerJoin('tokens', 'tokens.id', 'usage_log.token_id')
    .selectAll('usage_log')
    .select(['users.username', 'tokens.name as token_name'])
}

/** Reads a row of `withNames`. */
function entryFromRow(
  row: UsageLogRow & { readonly username: string; readonly token_name: string },
): UsageEntry {
  const { username, token_name } = row
  return { ...USAGE.fromRow(row), usage: usageFromRow(row), username, token_name }
}
