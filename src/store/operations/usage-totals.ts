import { type Expression, type ExpressionBuilder, type SqlBool, sql } from 'kysely'
import type { UsageFilter, UsageTotals } from '../../domain/usage-entry.ts'
import type { Database } from '../schema.ts'
import { type UsageColumns, usageFromRow } from '../usage-from-row.ts'
import type { Db } from './operation.ts'
import { matchingRows, boundScan, type UsageCursor, type UsageScan, withUser } from './usage-scan.ts'
import { COUNT_COLUMNS } from '../usage-counts.ts'

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
  { userId, tokenName, model, channel, group }: UsageFilter,
  { first, last }: UsageDays,
): Expression<SqlBool> {
  const wanted: Expression<SqlBool>[] = []
  if (userId !== undefined) wanted.push(eb('user_id', '=', userId))
  if (first !== undefined) wanted.push(eb('day', '>=', first))
  if (last !== undefined) wanted.push(eb('day', '<=', last))
  if (tokenName !== undefined)
    wanted.push(
      eb('token_id', 'in', eb.selectFrom('tokens').select('tokens.id').where('tokens.name', '=', tokenName)),
    )
  if (model !== undefined) wanted.push(eb('model', '=', model))
  if (channel !== undefined) wanted.push(eb('channel', '=', channel))
  if (group !== undefined) wanted.push(eb('group_name', '=', group))
  return eb.and(wanted)
}

function totalsOf(row: Summed): UsageTotals {
  return { requests: row.requests, quota: row.quota, usage: usageFromRow(row) }
}
