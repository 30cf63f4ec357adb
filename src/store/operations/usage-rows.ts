import type { CallKind } from '../../domain/call-kind.ts'
import type { SettlementReason } from '../../domain/settlement.ts'
import type { UsageEntry, UsageFilter } from '../../domain/usage-entry.ts'
import type { UsageLogRow } from '../schema.ts'
import { usageFromRow } from '../usage-from-row.ts'
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

/** Newest rows that one list scans; an earlier end of the filter reaches older ones. */
const MAX_LISTED_ROWS = 100_000

/** Reads a page of matching rows, latest end first, and their number among the newest 100,000. */
export async function listUsage(
  db: Db,
  {
    filter,
    offset,
    limit,
  }: { readonly filter: UsageFilter; readonly offset: number; readonly limit: number },
): Promise<{ readonly total: number; readonly entries: readonly UsageEntry[] }> {
  const scan = await boundScan(db, { filter, after: null, maxRows: MAX_LISTED_ROWS })
  if (!scan) return { total: 0, entries: [] }
  const { total } = await matchingRows(db, scan)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  const page = latestRows(db, scan, offset + limit)
    .select('id')
    .orderBy('ended_ms', 'desc')
    .orderBy('id', 'desc')
    .offset(offset)
    .limit(limit)
  // Repeats the bounds, because PostgreSQL does not derive the partitions from the ids of the subquery.
  const rows = await withNames(db)
    .where('usage_log.id', 'in', page)
    .where((eb) => withinIds(eb, scan))
    .orderBy('ended_ms', 'desc')
    .orderBy('usage_log.id', 'desc')
    .execute()
  return { total, entries: rows.map(entryFromRow) }
}

/**
 * Selects the matching rows that can be among the `count` with the latest ends, which spares sorting all: none
 * of those ended before all of the `count` newest by id had. A user's index has them sorted.
 */
function latestRows(db: Db, scan: BoundedScan, count: number) {
  const rows = matchingRows(db, scan)
  if (scan.filter.userId !== undefined) return rows
  const newest = matchingRows(db, scan).select('ended_ms').orderBy('id', 'desc').limit(count).as('newest')
  return rows.where(
    'ended_ms',
    '>=',
    db.selectFrom(newest).select(({ fn }) => fn.min('ended_ms').as('least')),
  )
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
  if (scan.filter.userId !== undefined) query = query.orderBy('ended_ms', 'desc')
  const rows = await query.orderBy('usage_log.id', 'desc').execute()
  return { entries: rows.map(entryFromRow), next: scan.end }
}

function withNames(db: Db) {
  return db
    .selectFrom('usage_log')
    .innerJoin('users', 'users.id', 'usage_log.user_id')
    .innerJoin('tokens', 'tokens.id', 'usage_log.token_id')
    .selectAll('usage_log')
    .select(['users.username', 'tokens.name as token_name'])
}

function entryFromRow(
  row: UsageLogRow & { readonly username: string; readonly token_name: string },
): UsageEntry {
  return {
    id: row.id,
    endedMs: row.ended_ms,
    userId: row.user_id,
    username: row.username,
    tokenId: row.token_id,
    tokenName: row.token_name,
    model: row.model,
    requestedModel: row.requested_model,
    upstreamModel: row.upstream_model,
    channel: row.channel,
    group: row.group_name,
    usage: usageFromRow(row),
    quota: row.quota,
    priceVersion: row.price_version,
    durationMs: row.duration_ms,
    firstByteMs: row.first_byte_ms,
    stream: row.stream === 1,
    reason: row.reason as SettlementReason,
    kind: row.kind as CallKind,
  }
}
