import { type RawBuilder, sql } from 'kysely'
import type { Coverage, SeriesPlan } from '../../domain/series-plan.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { LATENCY_COLUMNS, POINT_COLUMNS, SLOT_MS, SLOTS_PER_DAY } from '../usage-points.ts'
import type { Db } from './operation.ts'
import { namesOf } from './names-of.ts'
import {
  and,
  COLUMNS,
  type Column,
  conditions,
  filteredColumns,
  hasDailyLatency,
  inDays,
  inSlots,
  type SeriesDimension,
  summed,
  tablesFor,
} from './series-tables.ts'
import { withUser } from './usage-scan.ts'

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

/** Reads for which days there are sums. */
export async function usageCoverage(db: Db): Promise<Coverage> {
  const { rows } = await sql<{ slot: number | null; day: number | null }>`
    select (select min(slot) from usage_slot_routes) as slot, (select min(day) from usage_days) as day`.execute(
    db,
  )
  const { slot = null, day = null } = rows[0] ?? {}
  if (slot === null || day === null)
    return { firstSlotDay: Number.POSITIVE_INFINITY, firstDay: day ?? Number.POSITIVE_INFINITY }
  // Half hours of the first day may have been removed, unless it is the first of all.
  const first = Math.floor(slot / SLOTS_PER_DAY)
  return { firstSlotDay: day < first ? first + 1 : first, firstDay: day }
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

/** Sums up a plan by step, for these values of a dimension or, without one, for all (key null). */
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

/**
 * Removes the sums and counters of the first half hour before `beforeMs` that has any, as its day (UTC) has
 * ended by then. Resolves to the number of rows. Sums without keys go first, as they tell which days are
 * complete.
 */
export async function pruneSlots(db: Db, { nowMs: beforeMs }: { readonly nowMs: number }): Promise<number> {
  const end = Math.floor(beforeMs / (SLOTS_PER_DAY * SLOT_MS)) * SLOTS_PER_DAY
  for (const table of ['usage_slot_routes', 'usage_slots', 'usage_refusals'] as const) {
    const { numAffectedRows } = await sql`
      delete from ${sql.table(table)}
      where slot = (select min(slot) from ${sql.table(table)}) and slot < ${end}`.execute(db)
    if (Number(numAffectedRows ?? 0) > 0) return Number(numAffectedRows)
  }
  return 0
}
