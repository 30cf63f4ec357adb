import { USAGE, type UsageEntry, type UsageLogRow } from '../../domain/records/usage.ts'
import { usageFromRow } from '../usage-counts.ts'
import type { Db } from './operation.ts'
import { boundScan, matchesFilter, type UsageCursor, type UsageScan, withinScan } from './usage-scan.ts'

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
export function withNames(db: Db) {
  return db
    .selectFrom('usage_log')
    .innerJoin('users', 'users.id', 'usage_log.user_id')
    .innerJoin('tokens', 'tokens.id', 'usage_log.token_id')
    .selectAll('usage_log')
    .select(['users.username', 'tokens.name as token_name'])
}

/** Reads a row of `withNames`. */
export function entryFromRow(
  row: UsageLogRow & { readonly username: string; readonly token_name: string },
): UsageEntry {
  const { username, token_name } = row
  return { ...USAGE.fromRow(row), usage: usageFromRow(row), username, token_name }
}
