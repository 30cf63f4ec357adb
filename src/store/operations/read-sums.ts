import { sql, type RawBuilder } from 'kysely'
import { type UsageFilter, filterValueList } from '../../domain/usage-filter.ts'
import { addHistogram, emptyHistogram } from '../../domain/latency.ts'
import {
  DIMENSION_COLUMNS,
  type DimensionColumn,
  HISTOGRAMS,
  ROUTE_COLUMNS,
  smallestSumKind,
  ROUTE_DIMENSIONS,
  type SumKind,
} from '../sum-kinds.ts'
import { COUNT_COLUMNS } from '../usage-row.ts'
import type { Db } from './operation.ts'

/**
 * Days or half hours, counted from 1970-01-01, UTC: a range that includes both ends, or a list in ascending
 * order.
 */
type SumStarts =
  | { readonly first?: number | undefined; readonly last?: number | undefined }
  | readonly number[]

/** A query for sums in `usage_sums`. */
export interface SumsQuery {
  /** Filter for calls. Its times and call id are ignored, and a user must be given by id. */
  readonly filter: UsageFilter
  readonly unit: SumKind['unit']
  readonly starts: SumStarts
  /** Whether to return a row for each half hour or day instead of one row for all. */
  readonly perStart?: boolean
  /** Dimension by which the sums are divided. */
  readonly by?: DimensionColumn | undefined
  /** Values of the dimension for which sums are read; all values if not given. */
  readonly keys?: readonly (string | number)[] | undefined
  /** Columns to sum. `ROUTE_COLUMNS` cannot be read by user or key. */
  readonly columns: readonly string[]
  /** Whether to return the histograms of latencies, which cannot be read by user or key. */
  readonly withHistograms?: boolean | undefined
}

/**
 * A row of the result of `readSums`: the sums for one value of the dimension, over a half hour, a day or the
 * whole period.
 */
export interface SumsRow {
  /** The half hour or day of the row; null in a row for the whole period. */
  readonly at: number | null
  /** Value of the dimension; null if the query has no dimension. */
  readonly key: string | number | null
  /** Sums in the order of the query's columns, then the counts by bucket of both histograms if requested. */
  readonly sums: readonly number[]
}

/**
 * Reads sums from the kind that has all needed dimensions and the fewest rows (`SUM_KINDS`). Without a
 * dimension in the query, one row is returned.
 */
export async function readUsageSums(
  db: Db,
  { filter, unit, starts, perStart = false, by, keys, columns, withHistograms }: SumsQuery,
): Promise<SumsRow[]> {
  const kind = smallestSumKind(unit, [...filteredColumns(filter), ...(by ? [by] : [])], {
    withRoutes: withHistograms === true || columns.some((name) => ROUTE_COLUMNS.includes(name)),
  })
  const ofKind = sql`kind = ${sql.lit(kind.kind)}`
  const accounts = accountsOf({ filter, by, keys })
  const times = accounts.length > 0 ? among(starts, ofKind) : within(starts)
  const wanted = [ofKind, times, ...accounts, ...routesOf({ filter, by, keys })]
  const groups = [...(perStart ? ['start'] : []), ...(by ? dimensionsUpTo(by, kind) : [])]
  const { rows } = await sql<Record<string, string | number | null>>`
    select ${perStart ? sql.ref('start') : sql`null`} as at, ${by ? sql.ref(by) : sql`null`} as key,
      ${sql.join([...columns.map(summed), ...(withHistograms ? HISTOGRAMS.map(joined) : [])])}
    from usage_sums where ${sql.join(wanted, sql` and `)}
    ${groups.length > 0 ? sql`group by ${sql.join(groups.map((name) => sql.ref(name)))}` : sql``}`.execute(db)
  return rows.map((row) => ({
    at: row['at'] as number | null,
    key: row['key'] ?? null,
    sums: [
      ...columns.map((name) => row[name] as number),
      ...(withHistograms ? HISTOGRAMS.flatMap((name) => countsIn(row[name] as string | null)) : []),
    ],
  }))
}

// Also groups by those columns before the dimension that are constant in this kind of sums, because the rows
// are stored in the order of all columns.
function dimensionsUpTo(by: DimensionColumn, kind: SumKind): string[] {
  const before = DIMENSION_COLUMNS.slice(0, DIMENSION_COLUMNS.indexOf(by))
  return [...before.filter((name) => !kind.by.has(name)), by]
}

/** Whether the filter names users or keys, of which the sums have no latencies and no causes of failures. */
export function isOfAccounts({ user_id, username, token_id, token_name }: UsageFilter): boolean {
  return [user_id, username, token_id, token_name].some((one) => one !== undefined)
}

function filteredColumns(filter: UsageFilter): DimensionColumn[] {
  const { user_id, token_id, token_name, model, channel, group, service_tier, region } = filter
  const given = [user_id, token_id ?? token_name, model, channel, group, service_tier, region]
  return DIMENSION_COLUMNS.filter((_, index) => given[index] !== undefined)
}

type Wanted = Pick<SumsQuery, 'filter' | 'by' | 'keys'>

// A key is looked up together with its user's id, because the rows are stored in the order of users.
function accountsOf({ filter, by, keys }: Wanted): RawBuilder<unknown>[] {
  const { user_id, token_id, token_name } = filter
  const ofTokens = (wanted: RawBuilder<unknown>): RawBuilder<unknown> =>
    sql`(user_id, token_id) in (select user_id, id from tokens where ${wanted})`
  return [
    ...(user_id === undefined ? [] : [isAmong('user_id', filterValueList(user_id))]),
    ...(token_id === undefined ? [] : [ofTokens(isAmong('id', filterValueList(token_id)))]),
    ...(token_name === undefined ? [] : [ofTokens(isAmong('name', filterValueList(token_name)))]),
    ...(by === 'user_id' && keys ? [isAmong(by, keys)] : []),
    ...(by === 'token_id' && keys ? [ofTokens(isAmong('id', keys))] : []),
  ]
}

function routesOf({ filter, by, keys }: Wanted): RawBuilder<unknown>[] {
  const { model, channel, group, service_tier: tier, region } = filter
  return [
    ...(model === undefined ? [] : [isAmong('model', filterValueList(model))]),
    ...(channel === undefined ? [] : [isAmong('channel', filterValueList(channel))]),
    ...(group === undefined ? [] : [isAmong('group_name', filterValueList(group))]),
    ...(tier === undefined ? [] : [isAmong('service_tier', filterValueList(tier))]),
    ...(region === undefined ? [] : [isAmong('region', filterValueList(region))]),
    ...(by && ROUTE_DIMENSIONS.includes(by) && keys ? [isAmong(by, keys)] : []),
  ]
}

/** SQL condition that a column has one of these values. */
export const isAmong = (column: string, values: readonly (string | number)[]): RawBuilder<unknown> =>
  sql`${sql.ref(column)} in (${sql.join(values.map((value) => (typeof value === 'number' ? sql.lit(value) : value)))})`

// Uses a single range if the list has no gaps, because that is faster.
function within(starts: SumStarts): RawBuilder<unknown> {
  const [first = 0, last = Number.MAX_SAFE_INTEGER] = endsOf(starts)
  if (isList(starts) && last - first !== starts.length - 1) return isAmong('start', starts)
  return sql`start between ${sql.lit(first)} and ${sql.lit(last)}`
}

/**
 * SQL condition for half hours or days, used if the query names users or keys. Each half hour or day is
 * looked up in the primary key together with these users or keys, so that few rows are read and no other
 * index is needed. For a range, looks up only the half hours or days that have rows.
 */
function among(starts: SumStarts, ofKind: RawBuilder<unknown>): RawBuilder<unknown> {
  if (isList(starts)) return isAmong('start', starts)
  const [first = 0, last = Number.MAX_SAFE_INTEGER] = endsOf(starts)
  const firstOf = (wanted: RawBuilder<unknown>): RawBuilder<unknown> =>
    sql`select min(start) from usage_sums where ${ofKind} and ${wanted}`
  return sql`start in (
    with recursive present (start) as (
      ${firstOf(sql`start >= ${sql.lit(first)}`)}
      union all
      select (${firstOf(sql`start > present.start`)}) from present where present.start < ${sql.lit(last)}
    )
    select start from present where start <= ${sql.lit(last)})`
}

const endsOf = (starts: SumStarts): (number | undefined)[] =>
  isList(starts) ? [starts[0], starts.at(-1)] : [starts.first, starts.last]

const isList = (starts: SumStarts): starts is readonly number[] => Array.isArray(starts)

const CACHE_WRITES = COUNT_COLUMNS.filter((name) => name.startsWith('cache_write_'))

/** Columns of a query that are the sum of several table columns. */
const ADDED: Readonly<Record<string, readonly string[]>> = {
  cache_write_tokens: CACHE_WRITES,
  tokens: ['input_tokens', 'cache_read_tokens', ...CACHE_WRITES, 'output_tokens'],
}

/** SQL for the sum of a column as an integer. Cache writes of all lifetimes are added together. */
function summed(column: string): RawBuilder<unknown> {
  const source = sql.join(
    (ADDED[column] ?? [column]).map((name) => sql.ref(name)),
    sql` + `,
  )
  return sql`cast(coalesce(sum(${source}), 0) as bigint) as ${sql.ref(column)}`
}

/** SQL for the sum of histograms: their texts in a row (`addHistogram`). */
const joined = (column: string): RawBuilder<unknown> =>
  sql`string_agg(${sql.ref(column)}, '') as ${sql.ref(column)}`

function countsIn(text: string | null): number[] {
  const counts = emptyHistogram()
  if (text !== null) addHistogram(counts, text)
  return counts
}
