import { sql } from 'kysely'
import type { UsageDimension, UsageFilter, UsageTotals } from '../../domain/usage-filter.ts'
import type { DimensionColumn } from '../sum-kinds.ts'
import type { UsageColumns } from '../../domain/records/usage-counts.ts'
import { COUNT_COLUMNS, usageFromRow } from '../usage-counts.ts'
import { namesOf } from './names-of.ts'
import type { Db } from './operation.ts'
import { readSums, type SumsRow } from './read-sums.ts'
import { matchingRows, boundScan, type UsageCursor, type UsageScan, withUser } from './usage-scan.ts'

/** Range of days since 1970-01-01, UTC, both ends included; undefined = unbounded. */
export interface UsageDays {
  readonly first?: number | undefined
  readonly last?: number | undefined
}

/** Usage of one model on one day. */
export interface UsageOfDay extends UsageTotals {
  readonly day: number
  readonly model: string
}

/** Sums the matching rows of one scan; `next` is the cursor of the next scan, or null at the end. */
export async function sumUsageScan(
  db: Db,
  given: UsageScan,
): Promise<{ readonly totals: UsageTotals; readonly next: UsageCursor | null }> {
  const scan = await boundScan(db, given)
  if (!scan) return { totals: totalsOf(undefined), next: null }
  const row = await matchingRows(db, scan)
    .select([
      sql<number>`cast(coalesce(sum(case when reason = 'failed' then 0 else 1 end), 0) as bigint)`.as(
        'requests',
      ),
      // Casts the sums, because PostgreSQL returns a wider type.
      ...(['quota', ...COUNT_COLUMNS] as const).map((name) =>
        sql<number>`cast(coalesce(sum(${sql.ref(name)}), 0) as bigint)`.as(name),
      ),
    ])
    .executeTakeFirstOrThrow()
  return {
    totals: { requests: row.requests, quota: row.quota, usage: usageFromRow(row) },
    next: scan.end,
  }
}

const COLUMNS = ['requests', 'quota', ...COUNT_COLUMNS]

/** Sums whole days. Ignores the times and the id of the filter, which daily sums do not have. */
export async function sumUsageDays(
  db: Db,
  { filter, days }: { readonly filter: UsageFilter; readonly days: UsageDays },
): Promise<UsageTotals> {
  const resolved = await withUser(db, filter)
  if (!resolved) return totalsOf(undefined)
  const [row] = await readSums(db, { filter: resolved, unit: 'day', starts: days, columns: COLUMNS })
  return totalsOf(row)
}

/** Sums usage by day and model, earliest day first. */
export async function usageByDay(
  db: Db,
  { filter, days }: { readonly filter: UsageFilter; readonly days: UsageDays },
): Promise<UsageOfDay[]> {
  const resolved = await withUser(db, filter)
  if (!resolved) return []
  const query = { filter: resolved, unit: 'day', starts: days, columns: COLUMNS } as const
  const rows = await readSums(db, { ...query, perStart: true, by: 'model' })
  return rows
    .map((row) => ({ day: row.at ?? 0, model: String(row.key), ...totalsOf(row) }))
    .toSorted((one, other) => one.day - other.day || (one.model < other.model ? -1 : 1))
}

/** Usage of one value of a dimension. */
export interface UsageGroup extends UsageTotals {
  /** Name of the model, user, key or channel, or the day as `2026-01-31`. */
  readonly name: string
  /** Id of the user or key; undefined for other dimensions. */
  readonly id: number | undefined
}

/** Sums whole days by one dimension, the highest charge first; days in their order. */
export async function usageGroups(
  db: Db,
  { by, days }: { readonly by: UsageDimension; readonly days: UsageDays },
): Promise<UsageGroup[]> {
  const query = { filter: {}, unit: 'day', starts: days, columns: COLUMNS } as const
  if (by === 'day') {
    const rows = await readSums(db, { ...query, perStart: true })
    return rows
      .toSorted((one, other) => (one.at ?? 0) - (other.at ?? 0))
      .map((row) => ({ name: dateOf(row.at ?? 0), id: undefined, ...totalsOf(row) }))
  }
  const rows = await readSums(db, { ...query, by: GROUP_COLUMNS[by] })
  const hasIds = by === 'user' || by === 'key'
  const names = await namesOf(
    db,
    by === 'key' ? 'token' : by,
    rows.map(({ key }) => key ?? 0),
  )
  return rows
    .map(({ key, ...row }) => ({
      name: hasIds ? (names.get(key ?? 0) ?? '') : String(key),
      id: hasIds ? Number(key) : undefined,
      ...totalsOf(row),
    }))
    .toSorted((one, other) => other.quota - one.quota || (one.name < other.name ? -1 : 1))
}

const GROUP_COLUMNS: Readonly<Record<Exclude<UsageDimension, 'day'>, DimensionColumn>> = {
  model: 'model',
  user: 'user_id',
  key: 'token_id',
  channel: 'channel',
}

const DAY_MS = 86_400_000
const dateOf = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

function totalsOf(row: Pick<SumsRow, 'sums'> | undefined): UsageTotals {
  const [requests = 0, quota = 0, ...counts] = row?.sums ?? []
  const columns = Object.fromEntries(COUNT_COLUMNS.map((name, index) => [name, counts[index] ?? 0]))
  return { requests, quota, usage: usageFromRow(columns as unknown as UsageColumns) }
}
