import { type Expression, type ExpressionBuilder, type SqlBool, sql } from 'kysely'
import type { UsageDimension } from '../../domain/usage-dimension.ts'
import type { UsageFilter, UsageTotals } from '../../domain/usage-filter.ts'
import type { Database } from '../schema.ts'
import type { UsageColumns } from '../../domain/records/usage-counts.ts'
import type { Db } from './operation.ts'
import { matchingRows, boundScan, type UsageCursor, type UsageScan, withUser } from './usage-scan.ts'
import { COUNT_COLUMNS, usageFromRow } from '../usage-counts.ts'

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
  if (!scan) return { totals: totalsOf(NO_USAGE_ROWS), next: null }
  const row = await matchingRows(db, scan)
    .select([
      sql<number>`cast(coalesce(sum(case when reason = 'failed' then 0 else 1 end), 0) as bigint)`.as(
        'requests',
      ),
      ...SUMS,
    ])
    .executeTakeFirstOrThrow()
  return { totals: totalsOf(row), next: scan.end }
}

/** Sums whole days. Ignores the times and the id of the filter, which daily sums do not have. */
export async function sumUsageDays(
  db: Db,
  { filter, days }: { readonly filter: UsageFilter; readonly days: UsageDays },
): Promise<UsageTotals> {
  const resolved = await withUser(db, filter)
  if (!resolved) return totalsOf(NO_USAGE_ROWS)
  const row = await db
    .selectFrom('usage_days')
    .where((eb) => matchesDays(eb, resolved, days))
    .select([REQUESTS, ...SUMS])
    .executeTakeFirstOrThrow()
  return totalsOf(row)
}

/** Sums usage by day and model, earliest day first. */
export async function usageByDay(
  db: Db,
  { filter, days }: { readonly filter: UsageFilter; readonly days: UsageDays },
): Promise<UsageOfDay[]> {
  const resolved = await withUser(db, filter)
  if (!resolved) return []
  const rows = await db
    .selectFrom('usage_days')
    .where((eb) => matchesDays(eb, resolved, days))
    .select(['day', 'model', REQUESTS, ...SUMS])
    .groupBy(['day', 'model'])
    .orderBy('day')
    .orderBy('model')
    .execute()
  return rows.map((row) => ({ day: row.day, model: row.model, ...totalsOf(row) }))
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
  const column = DIMENSION_COLUMNS[by]
  const rows = await db
    .selectFrom('usage_days')
    .where((eb) => matchesDays(eb, {}, days))
    .select([sql<string | number>`${sql.ref(column)}`.as('value'), REQUESTS, ...SUMS])
    .groupBy(column)
    .execute()
  const names = await namesOf(db, by)
  const groups = rows.map(({ value, ...sums }) => ({ ...namedGroup(by, value, names), ...totalsOf(sums) }))
  return by === 'day'
    ? groups.toSorted((one, other) => (one.name < other.name ? -1 : 1))
    : groups.toSorted((one, other) => other.quota - one.quota || (one.name < other.name ? -1 : 1))
}

const DIMENSION_COLUMNS = {
  model: 'model',
  user: 'user_id',
  key: 'token_id',
  channel: 'channel',
  day: 'day',
} as const

// Rows of deleted users and keys keep their names.
async function namesOf(db: Db, by: UsageDimension): Promise<ReadonlyMap<number, string>> {
  if (by !== 'user' && by !== 'key') return new Map()
  const rows =
    by === 'user'
      ? await db.selectFrom('users').select(['id', 'username as name']).execute()
      : await db.selectFrom('tokens').select(['id', 'name']).execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}

function namedGroup(
  by: UsageDimension,
  value: string | number,
  names: ReadonlyMap<number, string>,
): Pick<UsageGroup, 'name' | 'id'> {
  if (by === 'day')
    return { name: new Date(Number(value) * DAY_MS).toISOString().slice(0, 10), id: undefined }
  if (by !== 'user' && by !== 'key') return { name: String(value), id: undefined }
  return { name: names.get(Number(value)) ?? '', id: Number(value) }
}

const DAY_MS = 86_400_000
const SUMMED = ['quota', ...COUNT_COLUMNS] as const

type Summed = UsageColumns & { readonly requests: number; readonly quota: number }

// Casts the sums, because PostgreSQL returns a wider type.
const SUMS = SUMMED.map((name) => sql<number>`cast(coalesce(sum(${sql.ref(name)}), 0) as bigint)`.as(name))
const REQUESTS = sql<number>`cast(coalesce(sum(requests), 0) as bigint)`.as('requests')

const NO_USAGE_ROWS = Object.fromEntries(
  ['requests', ...SUMMED].map((name) => [name, 0]),
) as unknown as Summed

function matchesDays(
  eb: ExpressionBuilder<Database, 'usage_days'>,
  { user_id, token_name, model, channel, group }: UsageFilter,
  { first, last }: UsageDays,
): Expression<SqlBool> {
  const wanted: Expression<SqlBool>[] = []
  if (user_id !== undefined) wanted.push(eb('user_id', '=', user_id))
  if (first !== undefined) wanted.push(eb('day', '>=', first))
  if (last !== undefined) wanted.push(eb('day', '<=', last))
  if (token_name !== undefined)
    wanted.push(
      eb('token_id', 'in', eb.selectFrom('tokens').select('tokens.id').where('tokens.name', '=', token_name)),
    )
  if (model !== undefined) wanted.push(eb('model', '=', model))
  if (channel !== undefined) wanted.push(eb('channel', '=', channel))
  if (group !== undefined) wanted.push(eb('group_name', '=', group))
  return eb.and(wanted)
}

function totalsOf(row: Summed): UsageTotals {
  return { requests: row.requests, quota: row.quota, usage: usageFromRow(row) }
}
