import { type RawBuilder, sql } from 'kysely'
import type { SeriesPlan } from '../../domain/series-plan.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'

/** The dimensions that a series can be split by. */
export const SERIES_DIMENSIONS = ['model', 'token', 'user', 'channel', 'group', 'none'] as const

/** A dimension of a series. */
export type SeriesDimension = (typeof SERIES_DIMENSIONS)[number]

/** Column of each dimension. */
export const COLUMNS = {
  model: 'model',
  token: 'token_id',
  user: 'user_id',
  channel: 'channel',
  group: 'group_name',
} as const

/** A column of a dimension. */
export type Column = (typeof COLUMNS)[keyof typeof COLUMNS]

const ACCOUNT: ReadonlySet<Column> = new Set(['user_id', 'token_id'])

/** Whether there are sums by days, with latencies, for this filter. */
export function hasDailyLatency(filter: UsageFilter): boolean {
  return tablesFor(filteredColumns(filter)).days !== 'usage_days'
}

/** Tables with the columns of a filter and a dimension, the smallest ones. */
export function tablesFor(columns: ReadonlySet<Column>): { readonly days: string; readonly slots: string } {
  const needsAccount = [...columns].some((name) => ACCOUNT.has(name))
  const needsRoute = [...columns].some((name) => !ACCOUNT.has(name))
  if (!needsAccount) return { days: 'usage_day_routes', slots: 'usage_slot_routes' }
  return { days: needsRoute ? 'usage_days' : 'usage_day_keys', slots: 'usage_slots' }
}

/** The columns that a filter needs. */
export function filteredColumns({
  user_id,
  username,
  token_name,
  model,
  channel,
  group,
}: UsageFilter): Set<Column> {
  const columns = new Set<Column>()
  if (user_id !== undefined || username !== undefined) columns.add('user_id')
  if (token_name !== undefined) columns.add('token_id')
  if (model !== undefined) columns.add('model')
  if (channel !== undefined) columns.add('channel')
  if (group !== undefined) columns.add('group_name')
  return columns
}

/** The conditions of a filter. */
export function conditions({
  user_id,
  token_name,
  model,
  channel,
  group,
}: UsageFilter): RawBuilder<unknown>[] {
  const wanted: RawBuilder<unknown>[] = []
  if (user_id !== undefined) wanted.push(sql`user_id = ${user_id}`)
  if (token_name !== undefined)
    wanted.push(sql`token_id in (select id from tokens where name = ${token_name})`)
  if (model !== undefined) wanted.push(sql`model = ${model}`)
  if (channel !== undefined) wanted.push(sql`channel = ${channel}`)
  if (group !== undefined) wanted.push(sql`group_name = ${group}`)
  return wanted
}

/** Joins conditions. */
export const and = (wanted: readonly RawBuilder<unknown>[]): RawBuilder<unknown> =>
  sql.join(wanted, sql` and `)

/** The condition for the days of a plan. */
export function inDays({ firstDay, days }: SeriesPlan): RawBuilder<unknown> {
  return sql`day >= ${sql.lit(firstDay)} and day < ${sql.lit(firstDay + days.length)}`
}

/** The condition for half hours in order: one range where there are no gaps, which is faster than a list. */
export function inSlots(slots: readonly number[]): RawBuilder<unknown> {
  const [first = 0, last = 0] = [slots[0], slots.at(-1)]
  if (last - first === slots.length - 1) return sql`slot >= ${sql.lit(first)} and slot <= ${sql.lit(last)}`
  return sql`slot in (${sql.join(slots.map((slot) => sql.lit(slot)))})`
}

/** Column of the daily sums; these have writes to caches by their lifetimes. */
function source(table: string, column: string): RawBuilder<unknown> {
  if (table === 'usage_days' && column === 'cache_write_tokens')
    return sql`cache_write_5m_tokens + cache_write_1h_tokens`
  return sql.ref(column)
}

/** The sum of a column, as an integer. */
export const summed = (table: string, column: string): RawBuilder<unknown> =>
  sql`cast(sum(${source(table, column)}) as bigint) as ${sql.ref(column)}`
