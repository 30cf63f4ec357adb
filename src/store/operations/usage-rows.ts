import type { SettlementReason } from '../../domain/settlement.ts'
import type { UsageEntry, UsageFilter } from '../../domain/usage-entry.ts'
import type { UsageLogRow } from '../schema.ts'
import { usageFromRow } from '../usage-from-row.ts'
import type { Db } from './operation.ts'
import {
  withinIds,
  withinScan,
  matchesFilter,
  matchingRows,
  boundScan,
  type UsageCursor,
  type UsageScan,
} from './usage-scan.ts'

/** The newest rows that one list looks at: older ones are reached by an earlier time. */
const MAX_LISTED_ROWS = 100_000

/**
 * A page of the usage log, the latest end of a call first, and how many are meant among the newest 100,000.
 */
export async function listUsage(
  db: Db,
  {
    filter,
    offset,
    limit,
  }: { readonly filter: UsageFilter; readonly offset: number; readonly limit: number },
): Promise<{ readonly total: number; readonly entries: readonly UsageEntry[] }> {
  const stretch = await boundScan(db, { filter, after: null, maxRows: MAX_LISTED_ROWS })
  if (!stretch) return { total: 0, entries: [] }
  const { total } = await matchingRows(db, stretch)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  const page = matchingRows(db, stretch)
    .select('id')
    .orderBy('ended_ms', 'desc')
    .orderBy('id', 'desc')
    .offset(offset)
    .limit(limit)
  // The bounds stand here too: PostgreSQL does not conclude from the ids in which partitions they are.
  const rows = await withNames(db)
    .where('usage_log.id', 'in', page)
    .where((eb) => withinIds(eb, stretch))
    .orderBy('ended_ms', 'desc')
    .orderBy('usage_log.id', 'desc')
    .execute()
  return { total, entries: rows.map(entryFromRow) }
}

/**
 * The rows that are meant in one stretch of the usage log, newest first, and where the next one begins;
 * `next` is null at the log's end. A stretch may hold none and have a next one.
 */
export async function scanUsage(
  db: Db,
  given: UsageScan,
): Promise<{ readonly entries: readonly UsageEntry[]; readonly next: UsageCursor | null }> {
  const stretch = await boundScan(db, given)
  if (!stretch) return { entries: [], next: null }
  let query = withNames(db)
    .where((eb) => withinScan(eb, stretch))
    .where((eb) => matchesFilter(eb, stretch.filter))
  if (stretch.filter.userId !== undefined) query = query.orderBy('ended_ms', 'desc')
  const rows = await query.orderBy('usage_log.id', 'desc').execute()
  return { entries: rows.map(entryFromRow), next: stretch.end }
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
  }
}
