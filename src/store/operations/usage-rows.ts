import type { CallKind } from '../../domain/endpoints.ts'
import type { CallNote } from '../../domain/call-note.ts'
import type { SettlementReason } from '../../domain/settlement.ts'
import type { UsageEntry } from '../../domain/usage-entry.ts'
import type { UsageLogRow } from '../schema.ts'
import { usageFromRow } from '../usage-from-row.ts'
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
  return {
    id: row.id,
    ended_ms: row.ended_ms,
    user_id: row.user_id,
    username: row.username,
    token_id: row.token_id,
    token_name: row.token_name,
    model: row.model,
    requested_model: row.requested_model,
    price_incomplete: row.price_incomplete === 1,
    note: row.note as CallNote | '',
    upstream_model: row.upstream_model,
    channel: row.channel,
    group: row.group_name,
    usage: usageFromRow(row),
    quota: row.quota,
    price_version: row.price_version,
    duration_ms: row.duration_ms,
    first_byte_ms: row.first_byte_ms,
    stream: row.stream === 1,
    reason: row.reason as SettlementReason,
    kind: row.kind as CallKind,
  }
}
