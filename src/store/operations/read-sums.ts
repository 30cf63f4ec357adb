import { sql, type RawBuilder } from 'kysely'
import { type UsageFilter, valuesOf } from '../../domain/usage-filter.ts'
import {
  DIMENSION_COLUMNS,
  type DimensionColumn,
  smallestSumKind,
  ROUTE_DIMENSIONS,
  type SumKind,
} from '../sum-kinds.ts'
import { COUNT_COLUMNS } from '../usage-row.ts'
import type { Db } from './operation.ts'

/** Days or half hours since 1970-01-01, UTC: a range with both ends included, or a list in order. */
type SumStarts =
  | { readonly first?: number | undefined; readonly last?: number | undefined }
  | readonly number[]

/** Query of `usage_sums`. */
export interface SumsQuery {
  /** The times and the id of the filter are ignored; its user must be given as an id. */
  readonly filter: UsageFilter
  readonly unit: SumKind['unit']
  readonly starts: SumStarts
  /** Whether to return a row for each half hour or day instead of one row for all. */
  readonly perStart?: boolean
  /** Dimension that the sums are divided by. */
  readonly by?: DimensionColumn | undefined
  /** Values of this dimension that are wanted; all unless given. */
  readonly keys?: readonly (string | number)[] | undefined
  readonly columns: readonly string[]
}

/** Row of sums. */
export interface SumsRow {
  /** The half hour or day; null in a row for all of them. */
  readonly at: number | null
  /** The value of the dimension; null without one. */
  readonly key: string | number | null
  /** In the order of the query's columns. */
  readonly sums: readonly number[]
}

/**
 * Reads sums, from the smallest kind that contains what the query needs. Without a dimension there is one
 * row.
 */
export async function readSums(
  db: Db,
  { filter, unit, starts, perStart = false, by, keys, columns }: SumsQuery,
): Promise<SumsRow[]> {
  const kind = smallestSumKind(unit, [...filteredColumns(filter), ...(by ? [by] : [])])
  const ofKind = sql`kind = ${sql.lit(kind.kind)}`
  const accounts = accountsOf({ filter, by, keys })
  const times = accounts.length > 0 ? among(starts, ofKind) : within(starts)
  const wanted = [ofKind, times, ...accounts, ...routesOf({ filter, by, keys })]
  const groups = [...(perStart ? ['start'] : []), ...(by ? dimensionsUpTo(by, kind) : [])]
  const { rows } = await sql<Record<string, string | number | null>>`
    select ${perStart ? sql.ref('start') : sql`null`} as at, ${by ? sql.ref(by) : sql`null`} as key,
      ${sql.join(columns.map(summed))}
    from usage_sums where ${sql.join(wanted, sql` and `)}
    ${groups.length > 0 ? sql`group by ${sql.join(groups.map((name) => sql.ref(name)))}` : sql``}`.execute(db)
  return rows.map((row) => ({
    at: row['at'] as number | null,
    key: row['key'] ?? null,
    sums: columns.map((name) => row[name] as number),
  }))
}

// With the preceding dimensions by which the kind does not divide, because the rows are stored in this order.
function dimensionsUpTo(by: DimensionColumn, kind: SumKind): string[] {
  const before = DIMENSION_COLUMNS.slice(0, DIMENSION_COLUMNS.indexOf(by))
  return [...before.filter((name) => !kind.by.has(name)), by]
}

function filteredColumns(filter: UsageFilter): DimensionColumn[] {
  const { user_id, token_id, token_name, model, channel, group, service_tier, region } = filter
  const given = [user_id, token_id ?? token_name, model, channel, group, service_tier, region]
  return DIMENSION_COLUMNS.filter((_, index) => given[index] !== undefined)
}

type Wanted = Pick<SumsQuery, 'filter' | 'by' | 'keys'>

// Includes the user of a key, because rows are in the order of users.
function accountsOf({ filter, by, keys }: Wanted): RawBuilder<unknown>[] {
  const { user_id, token_id, token_name } = filter
  const ofTokens = (wanted: RawBuilder<unknown>): RawBuilder<unknown> =>
    sql`(user_id, token_id) in (select user_id, id from tokens where ${wanted})`
  return [
    ...(user_id === undefined ? [] : [isAmong('user_id', valuesOf(user_id))]),
    ...(token_id === undefined ? [] : [ofTokens(isAmong('id', valuesOf(token_id)))]),
    ...(token_name === undefined ? [] : [ofTokens(isAmong('name', valuesOf(token_name)))]),
    ...(by === 'user_id' && keys ? [isAmong(by, keys)] : []),
    ...(by === 'token_id' && keys ? [ofTokens(isAmong('id', keys))] : []),
  ]
}

function routesOf({ filter, by, keys }: Wanted): RawBuilder<unknown>[] {
  const { model, channel, group, service_tier: tier, region } = filter
  return [
    ...(model === undefined ? [] : [isAmong('model', valuesOf(model))]),
    ...(channel === undefined ? [] : [isAmong('channel', valuesOf(channel))]),
    ...(group === undefined ? [] : [isAmong('group_name', valuesOf(group))]),
    ...(tier === undefined ? [] : [isAmong('service_tier', valuesOf(tier))]),
    ...(region === undefined ? [] : [isAmong('region', valuesOf(region))]),
    ...(by && ROUTE_DIMENSIONS.includes(by) && keys ? [isAmong(by, keys)] : []),
  ]
}

/** Condition that a column has one of these values. */
export const isAmong = (column: string, values: readonly (string | number)[]): RawBuilder<unknown> =>
  sql`${sql.ref(column)} in (${sql.join(values.map((value) => (typeof value === 'number' ? sql.lit(value) : value)))})`

// A single range if a list has no gaps, which is faster.
function within(starts: SumStarts): RawBuilder<unknown> {
  const [first = 0, last = Number.MAX_SAFE_INTEGER] = endsOf(starts)
  if (isList(starts) && last - first !== starts.length - 1) return isAmong('start', starts)
  return sql`start between ${sql.lit(first)} and ${sql.lit(last)}`
}

/**
 * Condition for half hours or days of some accounts. Each is looked up in the primary key with these
 * accounts, so that few rows are read without another index. For a range, each existing one is looked up.
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

/** Sums that add up several columns. */
const ADDED: Readonly<Record<string, readonly string[]>> = {
  cache_write_tokens: CACHE_WRITES,
  tokens: ['input_tokens', 'cache_read_tokens', ...CACHE_WRITES, 'output_tokens'],
}

/** The sum of a column, as an integer; writes to caches of all lifetimes are one. */
function summed(column: string): RawBuilder<unknown> {
  const source = sql.join(
    (ADDED[column] ?? [column]).map((name) => sql.ref(name)),
    sql` + `,
  )
  return sql`cast(coalesce(sum(${source}), 0) as bigint) as ${sql.ref(column)}`
}
