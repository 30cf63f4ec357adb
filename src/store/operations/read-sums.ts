import { type RawBuilder, sql } from 'kysely'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { DIMENSION_COLUMNS, type DimensionColumn, kindFor, type SumKind } from '../sum-kinds.ts'
import type { Db } from './operation.ts'

/** Days or half hours since 1970-01-01, UTC: a range with both ends included, or a list in order. */
export type SumStarts =
  | { readonly first?: number | undefined; readonly last?: number | undefined }
  | readonly number[]

/** End of time for days. The numbers of half hours are beyond, and are skipped in the index over users. */
const LAST_DAY = 100_000

/** Query of `usage_sums`. */
export interface SumsQuery {
  /** The times and the id of the filter are ignored, and its user is named by the id. */
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

/** Reads sums, from the smallest kind that has what the query needs. Without a division there is one row. */
export async function readSums(
  db: Db,
  { filter, unit, starts, perStart = false, by, keys, columns }: SumsQuery,
): Promise<SumsRow[]> {
  const kind = kindFor(unit, [...filteredColumns(filter), ...(by ? [by] : [])])
  const wanted = [isOf(kind, filter), ...within(starts, unit), ...conditions(filter)]
  if (by && keys) wanted.push(sql`${sql.ref(by)} in (${sql.join(keys)})`)
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

// SQLite would take the rows of a kind to be fewer than those of a user, whose index it should use.
function isOf({ kind }: SumKind, { user_id }: UsageFilter): RawBuilder<unknown> {
  const value = sql.lit(kind)
  return user_id === undefined ? sql`kind = ${value}` : sql`kind between ${value} and ${value}`
}

// With the dimensions before it by which the kind does not divide: the rows are stored in this order.
function dimensionsUpTo(by: DimensionColumn, kind: SumKind): string[] {
  const before = DIMENSION_COLUMNS.slice(0, DIMENSION_COLUMNS.indexOf(by))
  return [...before.filter((name) => !kind.by.has(name)), by]
}

function filteredColumns({ user_id, token_name, model, channel, group }: UsageFilter): DimensionColumn[] {
  const given = [user_id, token_name, model, channel, group]
  return DIMENSION_COLUMNS.filter((_, index) => given[index] !== undefined)
}

// `user_id > 0` is the condition of the index over users.
function conditions({ user_id, token_name, model, channel, group }: UsageFilter): RawBuilder<unknown>[] {
  return [
    ...(user_id === undefined ? [] : [sql`user_id = ${user_id} and user_id > 0`]),
    ...(token_name === undefined
      ? []
      : [sql`token_id in (select id from tokens where name = ${token_name})`]),
    ...(model === undefined ? [] : [sql`model = ${model}`]),
    ...(channel === undefined ? [] : [sql`channel = ${channel}`]),
    ...(group === undefined ? [] : [sql`group_name = ${group}`]),
  ]
}

// One range where a list has no gaps, which is faster.
function within(starts: SumStarts, unit: SumKind['unit']): RawBuilder<unknown>[] {
  if (!isList(starts)) {
    const { first, last = unit === 'day' ? LAST_DAY : undefined } = starts
    return [
      ...(first === undefined ? [] : [sql`start >= ${sql.lit(first)}`]),
      ...(last === undefined ? [] : [sql`start <= ${sql.lit(last)}`]),
    ]
  }
  const [first = 0, last = 0] = [starts[0], starts.at(-1)]
  if (last - first === starts.length - 1) return within({ first, last }, unit)
  return [sql`start in (${sql.join(starts.map((start) => sql.lit(start)))})`]
}

const isList = (starts: SumStarts): starts is readonly number[] => Array.isArray(starts)

/** The sum of a column, as an integer; writes to caches of all lifetimes are one. */
function summed(column: string): RawBuilder<unknown> {
  const source =
    column === 'cache_write_tokens' ? sql`cache_write_5m_tokens + cache_write_1h_tokens` : sql.ref(column)
  return sql`cast(coalesce(sum(${source}), 0) as bigint) as ${sql.ref(column)}`
}
