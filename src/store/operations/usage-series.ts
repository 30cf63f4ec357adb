import { type RawBuilder, sql } from 'kysely'
import type { Coverage, SeriesPlan } from '../../domain/series-plan.ts'
import type { UsageFilter } from '../../domain/usage-entry.ts'
import { LATENCY_COLUMNS, POINT_COLUMNS, SLOTS_PER_DAY } from '../usage-points.ts'
import type { Db } from './operation.ts'
import { withUser } from './usage-scan.ts'

/** The dimensions that a series can be split by. */
export const SERIES_DIMENSIONS = ['model', 'token', 'user', 'channel', 'group', 'none'] as const

/** A dimension of a series. */
export type SeriesDimension = (typeof SERIES_DIMENSIONS)[number]

/** Values of `POINT_COLUMNS`, or of `LATENCY_COLUMNS`. */
type Sums = readonly number[]

/** One line of a series: a value of its dimension. */
export interface SeriesLine {
  /** Name, or id of a user or API key; null = all values that have no line of their own. */
  readonly key: string | number | null
  /** Name of a user or API key, deleted ones included. */
  readonly label: string
  /** Sums of each step. */
  readonly points: readonly Sums[]
}

/** Sums of a period by step and dimension. */
export interface SeriesSums {
  /** The highest charge first; the line with key null, if there is one, is the last. */
  readonly lines: readonly SeriesLine[]
  /** Histograms of all calls for each step. */
  readonly latency: readonly Sums[]
  /** Sums of the period before. */
  readonly previous: Sums
}

/** Input of `usageSeries`. */
export interface SeriesQuery {
  readonly filter: UsageFilter
  readonly by: SeriesDimension
  /** Most lines, without the one of all others. */
  readonly top: number
  readonly steps: number
  readonly plan: SeriesPlan
  readonly latencyPlan: SeriesPlan
  /** One step. */
  readonly previousPlan: SeriesPlan
}

const COLUMNS = {
  model: 'model',
  token: 'token_id',
  user: 'user_id',
  channel: 'channel',
  group: 'group_name',
} as const

type Column = (typeof COLUMNS)[keyof typeof COLUMNS]

const ACCOUNT: ReadonlySet<Column> = new Set(['user_id', 'token_id'])

/** Reads for which days there are sums. */
export async function usageCoverage(db: Db): Promise<Coverage> {
  const { rows } = await sql<{ slot: number | null; day: number | null }>`
    select (select min(slot) from usage_slot_routes) as slot, (select min(day) from usage_days) as day`.execute(
    db,
  )
  const { slot = null, day = null } = rows[0] ?? {}
  return {
    firstSlotDay: slot === null ? Number.POSITIVE_INFINITY : Math.floor(slot / SLOTS_PER_DAY),
    firstDay: day ?? Number.POSITIVE_INFINITY,
  }
}

/** Whether there are sums by days, with latencies, for this filter. */
export function hasDailyLatency(filter: UsageFilter): boolean {
  return tablesFor(filteredColumns(filter)).days !== 'usage_days'
}

/** Sums a period by step and dimension. */
export async function usageSeries(db: Db, query: SeriesQuery): Promise<SeriesSums> {
  const { steps, plan, latencyPlan, previousPlan } = query
  const filter = await withUser(db, query.filter)
  if (!filter)
    return { lines: [], latency: zeros(steps, LATENCY_COLUMNS), previous: zeros(1, POINT_COLUMNS)[0] ?? [] }
  const all = { db, filter, column: undefined, keys: [] }
  const hasBoth = hasDailyLatency(filter)
  const columns = hasBoth ? [...POINT_COLUMNS, ...LATENCY_COLUMNS] : POINT_COLUMNS
  const totals = await sumPlan({ ...all, columns, plan, steps }).then(only)
  const points = totals?.map((sums) => sums.slice(0, POINT_COLUMNS.length)) ?? zeros(steps, POINT_COLUMNS)
  const latency = hasBoth
    ? totals?.map((sums) => sums.slice(POINT_COLUMNS.length))
    : await sumPlan({ ...all, columns: LATENCY_COLUMNS, plan: latencyPlan, steps }).then(only)
  const previous = await sumPlan({ ...all, columns: POINT_COLUMNS, plan: previousPlan, steps: 1 }).then(only)
  return {
    lines: await seriesLines(db, query, filter, points),
    latency: latency ?? zeros(steps, LATENCY_COLUMNS),
    previous: previous?.[0] ?? zeros(1, POINT_COLUMNS)[0] ?? [],
  }
}

const only = (lines: ReadonlyMap<string | number | null, number[][]>): number[][] | undefined =>
  lines.get(null)

/** Lines of the values with the highest charges; those of all others are what is left of the totals. */
async function seriesLines(
  db: Db,
  { by, top, steps, plan }: SeriesQuery,
  filter: UsageFilter,
  totals: readonly number[][],
): Promise<SeriesLine[]> {
  if (by === 'none') return [{ key: null, label: '', points: totals }]
  const column = COLUMNS[by]
  const ranked = await rankedKeys({ db, filter, column, plan })
  const keys = ranked.slice(0, top)
  const sums =
    keys.length === 0
      ? new Map<never, never>()
      : await sumPlan({ db, filter, column, keys, columns: POINT_COLUMNS, plan, steps })
  const names = await namesOf(db, by, keys)
  const left = totals.map((point) => [...point])
  const lines = keys.map((key): SeriesLine => {
    const points = sums.get(key) ?? zeros(steps, POINT_COLUMNS)
    for (const [step, point] of points.entries())
      for (const [index, value] of point.entries()) left[step]![index]! -= value
    return { key, label: names.get(key) ?? String(key), points }
  })
  return keys.length < ranked.length ? [...lines, { key: null, label: '', points: left }] : lines
}

interface Summing {
  readonly db: Db
  readonly filter: UsageFilter
  readonly plan: SeriesPlan
}

/** Tables with the columns of a filter and a dimension, the smallest ones. */
function tablesFor(columns: ReadonlySet<Column>): { readonly days: string; readonly slots: string } {
  const needsAccount = [...columns].some((name) => ACCOUNT.has(name))
  const needsRoute = [...columns].some((name) => !ACCOUNT.has(name))
  if (!needsAccount) return { days: 'usage_day_routes', slots: 'usage_slot_routes' }
  return { days: needsRoute ? 'usage_days' : 'usage_day_keys', slots: 'usage_slots' }
}

function filteredColumns({ userId, username, tokenName, model, channel, group }: UsageFilter): Set<Column> {
  const columns = new Set<Column>()
  if (userId !== undefined || username !== undefined) columns.add('user_id')
  if (tokenName !== undefined) columns.add('token_id')
  if (model !== undefined) columns.add('model')
  if (channel !== undefined) columns.add('channel')
  if (group !== undefined) columns.add('group_name')
  return columns
}

function conditions({ userId, tokenName, model, channel, group }: UsageFilter): RawBuilder<unknown>[] {
  const wanted: RawBuilder<unknown>[] = []
  if (userId !== undefined) wanted.push(sql`user_id = ${userId}`)
  if (tokenName !== undefined) wanted.push(sql`token_id in (select id from tokens where name = ${tokenName})`)
  if (model !== undefined) wanted.push(sql`model = ${model}`)
  if (channel !== undefined) wanted.push(sql`channel = ${channel}`)
  if (group !== undefined) wanted.push(sql`group_name = ${group}`)
  return wanted
}

const and = (wanted: readonly RawBuilder<unknown>[]): RawBuilder<unknown> => sql.join(wanted, sql` and `)

function inDays({ firstDay, days }: SeriesPlan): RawBuilder<unknown> {
  return sql`day >= ${sql.lit(firstDay)} and day < ${sql.lit(firstDay + days.length)}`
}

// One range where there are no gaps, which is faster than a list.
function inSlots(slots: readonly number[]): RawBuilder<unknown> {
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

const summed = (table: string, column: string): RawBuilder<unknown> =>
  sql`cast(sum(${source(table, column)}) as bigint) as ${sql.ref(column)}`

/** Lists the values of the dimension, the highest charge first. */
async function rankedKeys({
  db,
  filter,
  column,
  plan,
}: Summing & { readonly column: Column }): Promise<(string | number)[]> {
  const { days, slots } = tablesFor(filteredColumns(filter).add(column))
  const totals = new Map<string | number, { quota: number; requests: number }>()
  const add = (rows: readonly Ranked[], sign: number): void => {
    for (const { key, quota, requests } of rows) {
      const total = totals.get(key) ?? { quota: 0, requests: 0 }
      totals.set(key, { quota: total.quota + sign * quota, requests: total.requests + sign * requests })
    }
  }
  const read = async (table: string, within: RawBuilder<unknown>): Promise<readonly Ranked[]> => {
    const { rows } = await sql<Ranked>`
      select ${sql.ref(column)} as key, ${summed(table, 'quota')}, ${summed(table, 'requests')}
      from ${sql.table(table)} where ${and([within, ...conditions(filter)])} group by ${sql.ref(column)}`.execute(
      db,
    )
    return rows
  }
  if (plan.days.length > 0) add(await read(days, inDays(plan)), 1)
  for (const sign of [1, -1]) {
    const edges = plan.moved.filter(({ from, to }) => (sign === 1 ? from < 0 : to < 0))
    if (edges.length > 0) add(await read(slots, inSlots(edges.map(({ slot }) => slot))), sign)
  }
  return [...totals]
    .toSorted(
      ([oneKey, one], [otherKey, other]) =>
        other.quota - one.quota || other.requests - one.requests || (oneKey < otherKey ? -1 : 1),
    )
    .map(([key]) => key)
}

interface Ranked {
  readonly key: string | number
  readonly quota: number
  readonly requests: number
}

interface SumRow {
  readonly at: number
  readonly key: string | number | null
  readonly [column: string]: unknown
}

/** Sums up what the plan says by step, for these values of a dimension or, without one, for all (key null). */
async function sumPlan({
  db,
  filter,
  column,
  keys,
  columns,
  plan,
  steps,
}: Summing & {
  readonly column: Column | undefined
  readonly keys: readonly (string | number)[]
  readonly columns: readonly string[]
  readonly steps: number
}): Promise<ReadonlyMap<string | number | null, number[][]>> {
  const needed = filteredColumns(filter)
  if (column !== undefined) needed.add(column)
  const tables = tablesFor(needed)
  const lines = new Map<string | number | null, number[][]>()
  const add = (row: SumRow, step: number | undefined, sign: number): void => {
    if (step === undefined || step < 0) return
    let points = lines.get(row.key)
    if (!points) lines.set(row.key, (points = zeros(steps, columns)))
    const point = points[step]
    if (!point) return
    for (const [index, name] of columns.entries()) point[index]! += sign * (row[name] as number)
  }
  const read = async (
    table: string,
    time: 'day' | 'slot',
    within: RawBuilder<unknown>,
  ): Promise<SumRow[]> => {
    const wanted = [within, ...conditions(filter)]
    if (column !== undefined) wanted.push(sql`${sql.ref(column)} in (${sql.join(keys)})`)
    const { rows } = await sql<SumRow>`
      select ${sql.ref(time)} as at, ${column === undefined ? sql`null` : sql.ref(column)} as key,
        ${sql.join(columns.map((name) => summed(table, name)))}
      from ${sql.table(table)} where ${and(wanted)} group by ${sql.raw(column === undefined ? '1' : '1, 2')}`.execute(
      db,
    )
    return rows
  }
  if (plan.days.length > 0)
    for (const row of await read(tables.days, 'day', inDays(plan)))
      add(row, plan.days[row.at - plan.firstDay], 1)
  if (plan.moved.length > 0) {
    const moves = new Map(plan.moved.map((one) => [one.slot, one]))
    for (const row of await read(tables.slots, 'slot', inSlots([...moves.keys()]))) {
      add(row, moves.get(row.at)?.to, 1)
      add(row, moves.get(row.at)?.from, -1)
    }
  }
  return lines
}

const zeros = (steps: number, columns: readonly string[]): number[][] =>
  Array.from({ length: steps }, () => columns.map(() => 0))

async function namesOf(
  db: Db,
  by: SeriesDimension,
  keys: readonly (string | number)[],
): Promise<ReadonlyMap<string | number, string>> {
  if ((by !== 'user' && by !== 'token') || keys.length === 0) return new Map()
  const ids = keys as readonly number[]
  const rows =
    by === 'user'
      ? await db.selectFrom('users').select(['id', 'username as name']).where('id', 'in', ids).execute()
      : await db.selectFrom('tokens').select(['id', 'name']).where('id', 'in', ids).execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}
