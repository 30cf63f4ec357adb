import { sql } from 'kysely'
import { type CacheBreakCounts, cacheBreakCountsOf } from '../../domain/cache-break.ts'
import type { SumsCoverage, SeriesPlan } from '../../domain/series-plan.ts'
import { type UsageFilter, type UsageTotals, type UsageDimension } from '../../domain/usage-filter.ts'
import {
  CACHE_BREAK_COLUMNS,
  type DimensionColumn,
  smallestSumKind,
  SLOT_MS,
  SLOTS_PER_DAY,
} from '../sum-kinds.ts'
import type { Secrets } from '../secrets.ts'
import { channelIds, loggedChannelNames, presentChannelNames } from './channel-names.ts'
import { keyLabels } from './key-labels.ts'
import { type Db, namesOfAccounts } from './operation.ts'
import { isOfAccounts, readUsageSums, type SumsQuery, type SumsRow } from './read-sums.ts'
import {
  resolveFilterNames as resolvedFilter,
  selectMatchingCalls,
  resolveScanBounds,
  type UsageCursor,
  type UsageScan,
} from './usage-log.ts'
import type { UsageColumns } from '../../domain/records/usage-counts.ts'
import { COUNT_COLUMNS, usageFromRow } from '../usage-row.ts'

/** The dimensions by which a time series can be split. */
export const SERIES_DIMENSIONS = [
  'model',
  'token',
  'user',
  'channel',
  'group',
  'service_tier',
  'region',
  'none',
] as const

/** A dimension by which a time series is split. */
export type SeriesDimension = (typeof SERIES_DIMENSIONS)[number]

/** Column of `usage_sums` for each dimension. */
export const DIMENSION_COLUMN = {
  model: 'model',
  token: 'token_id',
  key: 'token_id',
  user: 'user_id',
  channel: 'channel',
  group: 'group_name',
  service_tier: 'service_tier',
  region: 'region',
} as const satisfies Readonly<
  Record<Exclude<SeriesDimension | UsageDimension, 'none' | 'day'>, DimensionColumn>
>

/** Columns that are summed for each point of a time series. */
const POINT_COLUMNS = [
  'requests',
  'failed',
  'quota',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cache_saved',
  'cache_surcharge',
  'hits',
  'hit_saved',
]

/** The sums by which the lines of a time series can be ranked. */
export const SERIES_RANKS = ['quota', 'requests', 'tokens', 'failed'] as const

/** A sum by which the lines of a time series are ranked. */
export type SeriesRank = (typeof SERIES_RANKS)[number]

/** Sums in the order of their columns: `POINT_COLUMNS`, or the counts by bucket of both histograms. */
type Sums = readonly number[]

/** One line of a time series: the sums for one value of the dimension. */
export interface SeriesLine {
  /** Name of the value, or id of a user, API key or channel; null in the line for all other values. */
  readonly key: string | number | null
  /** Name of the user, API key or channel, even if deleted. */
  readonly label: string
  /** Rank of the line, counted from 1, by each requested sum; null if the line is not among the top. */
  readonly ranks: Readonly<Partial<Record<SeriesRank, number | null>>>
  /** The sums of each step of time. */
  readonly points: readonly Sums[]
}

/** Sums of a period, divided by steps of time and by a dimension. */
interface SeriesSums {
  /**
   * Lines sorted by the first sum in `ranks`, highest first. If there is a line for all other values (`key`
   * null), it is last.
   */
  readonly lines: readonly SeriesLine[]
  /**
   * Latency histograms of all calls, for each step: counts by bucket of the durations of whole calls, then of
   * the times to the first byte. Null if the filter names users or keys, whose sums have none.
   */
  readonly latency: readonly Sums[] | null
  /** Number of prompt cache breaks in the period, by reason. */
  readonly breaks: CacheBreakCounts
  /** Sums of the preceding period of equal length. */
  readonly previous: Sums
}

/** Which sums `usageSeries` reads, and how they are divided. */
interface SeriesQuery {
  readonly filter: UsageFilter
  readonly by: SeriesDimension
  /** Maximum number of lines for each sum in `ranks`. The line for all other values is not counted. */
  readonly top: number
  readonly ranks: readonly SeriesRank[]
  /** Whether labels of API keys begin with the name of their user. */
  readonly withOwners: boolean
  readonly steps: number
  readonly plan: SeriesPlan
  /** How the sums of the preceding period are read, as a single step. */
  readonly previousPlan: SeriesPlan
}

/** Reads the first day with complete half-hourly sums, and the first day with daily sums. */
export async function usageSumsCoverage(db: Db): Promise<SumsCoverage> {
  const firstOf = (unit: 'slot' | 'day') =>
    sql`(select min(start) from usage_sums where kind = ${sql.lit(smallestSumKind(unit, ['model']).kind)})`
  const { rows } = await sql<{ slot: number | null; day: number | null }>`
    select ${firstOf('slot')} as slot, ${firstOf('day')} as day`.execute(db)
  const { slot = null, day = null } = rows[0] ?? {}
  if (slot === null || day === null)
    return { firstSlotDay: Number.POSITIVE_INFINITY, firstDay: day ?? Number.POSITIVE_INFINITY }
  // Some half hours of the first day may have been removed, unless it is also the first day of the daily
  // sums.
  const first = Math.floor(slot / SLOTS_PER_DAY)
  return { firstSlotDay: day < first ? first + 1 : first, firstDay: day }
}

/** Sums the calls of a period by steps of time and by a dimension. */
export async function usageSeries(db: Db, query: SeriesQuery, secrets: Secrets): Promise<SeriesSums> {
  const { steps, plan, previousPlan } = query
  const filter = await resolvedFilter(db, query.filter)
  if (!filter)
    return {
      lines: [],
      latency: null,
      breaks: {},
      previous: zeros(1, POINT_COLUMNS)[0] ?? [],
    }
  const columns = [...POINT_COLUMNS, ...CACHE_BREAK_COLUMNS]
  const withHistograms = !isOfAccounts(filter)
  const totals =
    (await readSumsOfSeriesPlan(db, { filter, columns, withHistograms }, plan, steps)).get(null) ??
    zeros(steps, columns)
  const previous = await readSumsOfSeriesPlan(db, { filter, columns: POINT_COLUMNS }, previousPlan, 1)
  return {
    lines: await seriesLines(
      db,
      query,
      filter,
      totals.map((sums) => sums.slice(0, POINT_COLUMNS.length)),
      secrets,
    ),
    latency: withHistograms ? totals.map((sums) => sums.slice(columns.length)) : null,
    breaks: cacheBreakCountsOf(
      CACHE_BREAK_COLUMNS.map((_, index) =>
        totals.reduce((sum, point) => sum + (point[POINT_COLUMNS.length + index] ?? 0), 0),
      ),
    ),
    previous: previous.get(null)?.[0] ?? zeros(1, POINT_COLUMNS)[0] ?? [],
  }
}

/**
 * Builds the lines for the values with the highest sums. The line for all other values is the totals minus
 * these lines.
 */
async function seriesLines(
  db: Db,
  { by, top, ranks, withOwners, steps, plan }: SeriesQuery,
  filter: UsageFilter,
  totals: readonly number[][],
  secrets: Secrets,
): Promise<SeriesLine[]> {
  if (by === 'none') return [{ key: null, label: '', ranks: {}, points: totals }]
  const column = DIMENSION_COLUMN[by]
  const { keys, places, isWhole } = await rankedByEach(db, filter, column, { plan, ranks, top })
  const sums =
    keys.length === 0
      ? new Map<never, never>()
      : await readSumsOfSeriesPlan(db, { filter, by: column, keys, columns: POINT_COLUMNS }, plan, steps)
  const names =
    by === 'token'
      ? await keyLabels(db, keys as readonly number[], withOwners, secrets)
      : await namesOfAccounts(db, by, keys)
  const idOf = by === 'channel' ? await channelIds(db, { names: keys.map(String) }) : undefined
  const left = totals.map((point) => [...point])
  const lines = keys.map((key): SeriesLine => {
    const points = sums.get(key) ?? zeros(steps, POINT_COLUMNS)
    for (const [step, point] of points.entries())
      for (const [index, value] of point.entries()) left[step]![index]! -= value
    const label = names.get(key) ?? String(key)
    return { key: idOf?.get(String(key)) ?? key, label, ranks: places(key), points }
  })
  return isWhole ? lines : [...lines, { key: null, label: '', ranks: {}, points: left }]
}

/**
 * Finds the values of a dimension that are among the `top` by any of the sums in `ranks`, with their ranks.
 * They are sorted by the first of these sums.
 */
async function rankedByEach(
  db: Db,
  filter: UsageFilter,
  by: DimensionColumn,
  {
    plan,
    ranks,
    top,
  }: { readonly plan: SeriesPlan; readonly ranks: readonly SeriesRank[]; readonly top: number },
): Promise<{
  readonly keys: readonly (string | number)[]
  readonly places: (key: string | number) => SeriesLine['ranks']
  readonly isWhole: boolean
}> {
  // Equal values are sorted by the higher charge, then by more calls.
  const columns = [...new Set<SeriesRank>([...ranks, 'quota', 'requests'])]
  const totals = await totalsByDimensionValue(db, filter, by, plan, columns)
  const placesBy = new Map<SeriesRank, ReadonlyMap<string | number, number>>()
  const found = new Set<string | number>()
  for (const rank of ranks) {
    const order = inOrder(
      totals,
      [rank, 'quota', 'requests'].map((name) => columns.indexOf(name as SeriesRank)),
    )
    // A value with a sum of 0 is not among the top, except by charge, so that free models have a line too.
    const at = columns.indexOf(rank)
    const counted = rank === 'quota' ? order : order.filter((key) => (totals.get(key)?.[at] ?? 0) > 0)
    const first = counted.slice(0, top)
    placesBy.set(rank, new Map(first.map((key, index) => [key, index + 1])))
    for (const key of first) found.add(key)
  }
  const [main = 'quota'] = ranks
  const keys = inOrder(
    totals,
    [main, 'quota', 'requests'].map((name) => columns.indexOf(name as SeriesRank)),
  )
  return {
    keys: keys.filter((key) => found.has(key)),
    places: (key) => Object.fromEntries(ranks.map((rank) => [rank, placesBy.get(rank)?.get(key) ?? null])),
    isWhole: found.size === totals.size,
  }
}

/**
 * Lists the values of a dimension by the sum of the first column, highest first. Equal values are sorted by
 * the next column.
 */
export async function rankDimensionValues(
  db: Db,
  filter: UsageFilter,
  by: DimensionColumn,
  plan: SeriesPlan,
  columns: readonly string[],
): Promise<(string | number)[]> {
  return inOrder(
    await totalsByDimensionValue(db, filter, by, plan, columns),
    columns.map((_, index) => index),
  )
}

/**
 * Sorts keys by the sums at the indexes `places`, highest first: by the first index, and if equal by the
 * next.
 */
function inOrder(
  totals: ReadonlyMap<string | number, readonly number[]>,
  places: readonly number[],
): (string | number)[] {
  return [...totals]
    .toSorted(
      ([oneKey, one], [otherKey, other]) =>
        places.reduce((least, place) => least || (other[place] ?? 0) - (one[place] ?? 0), 0) ||
        (oneKey < otherKey ? -1 : 1),
    )
    .map(([key]) => key)
}

/** Reads the sums of a whole period for each value of a dimension. */
export async function totalsByDimensionValue(
  db: Db,
  filter: UsageFilter,
  by: DimensionColumn,
  plan: SeriesPlan,
  columns: readonly string[],
): Promise<ReadonlyMap<string | number, readonly number[]>> {
  const totals = new Map<string | number, number[]>()
  const present = by === 'channel' ? await presentChannelNames(db) : undefined
  const add = async (of: Pick<SumsQuery, 'unit' | 'starts'>, sign: number): Promise<void> => {
    for (const { key: logged, sums } of await readUsageSums(db, { filter, by, columns, ...of })) {
      const key = present?.get(String(logged)) ?? logged ?? ''
      const total = totals.get(key) ?? columns.map(() => 0)
      totals.set(
        key,
        total.map((sum, index) => sum + sign * (sums[index] ?? 0)),
      )
    }
  }
  if (plan.days.length > 0) await add({ unit: 'day', starts: daysOf(plan) }, 1)
  for (const sign of [1, -1]) {
    const edges = plan.moved.filter(({ from, to }) => (sign === 1 ? from < 0 : to < 0))
    if (edges.length > 0) await add({ unit: 'slot', starts: edges.map(({ slot }) => slot) }, sign)
  }
  return totals
}

/**
 * Reads the sums of each step of a time series, as `plan` says, for each value of the dimension `given.by`.
 * Without a dimension, the result has one entry, with key null.
 */
export async function readSumsOfSeriesPlan(
  db: Db,
  given: Pick<SumsQuery, 'filter' | 'by' | 'keys' | 'columns' | 'withHistograms'>,
  plan: SeriesPlan,
  steps: number,
): Promise<ReadonlyMap<string | number | null, number[][]>> {
  const { firstDay, days, moved } = plan
  const lines = new Map<string | number | null, number[][]>()
  const present = given.by === 'channel' ? await presentChannelNames(db) : undefined
  const query =
    present && given.keys ? { ...given, keys: loggedChannelNames(given.keys.map(String), present) } : given
  const add = (logged: string | number | null, sums: Sums, step: number | undefined, sign: number): void => {
    if (step === undefined || step < 0) return
    const key = present?.get(String(logged)) ?? logged
    let points = lines.get(key)
    if (!points) lines.set(key, (points = Array.from({ length: steps }, () => sums.map(() => 0))))
    const point = points[step]
    if (point) for (let i = 0; i < sums.length; i += 1) point[i]! += sign * sums[i]!
  }
  const readSums = (unit: 'day' | 'slot', starts: readonly number[]) =>
    readUsageSums(db, { ...query, unit, starts, perStart: true })
  if (days.length > 0) {
    for (const { at, key, sums } of await readSums('day', daysOf(plan)))
      add(key, sums, days[(at ?? 0) - firstDay], 1)
  }
  if (moved.length > 0) {
    const moves = new Map(moved.map((one) => [one.slot, one]))
    for (const { at, key, sums } of await readSums('slot', [...moves.keys()])) {
      add(key, sums, moves.get(at ?? 0)?.to, 1)
      add(key, sums, moves.get(at ?? 0)?.from, -1)
    }
  }
  return lines
}

const daysOf = ({ firstDay, days }: SeriesPlan): number[] => days.map((_, index) => firstDay + index)

const zeros = (steps: number, columns: readonly string[]): number[][] =>
  Array.from({ length: steps }, () => columns.map(() => 0))

/**
 * Removes the sums and counters of the earliest half hour, if its day (UTC) ended before `beforeMs`. Resolves
 * to the number of removed rows. Sums that are not divided by API key are removed first, because they show
 * which days are complete.
 */
export async function pruneHalfHourSums(
  db: Db,
  { nowMs: beforeMs }: { readonly nowMs: number },
): Promise<number> {
  const end = Math.floor(beforeMs / (SLOTS_PER_DAY * SLOT_MS)) * SLOTS_PER_DAY
  for (const by of [['model'], ['model', 'user_id']] as const) {
    const kind = sql.lit(smallestSumKind('slot', by).kind)
    const removed = await sql`
      delete from usage_sums
      where kind = ${kind} and start = (select min(start) from usage_sums where kind = ${kind}) and start < ${end}`.execute(
      db,
    )
    if (Number(removed.numAffectedRows ?? 0) > 0) return Number(removed.numAffectedRows)
  }
  const { numAffectedRows } = await sql`
    delete from usage_refusals
    where slot = (select min(slot) from usage_refusals) and slot < ${end}`.execute(db)
  return Number(numAffectedRows ?? 0)
}

/** A range of days, counted from 1970-01-01, UTC; it includes both ends. undefined means no limit. */
interface UsageDays {
  readonly first?: number | undefined
  readonly last?: number | undefined
}

/** Usage of one model on one day. */
interface UsageOfDay extends UsageTotals {
  readonly day: number
  readonly model: string
}

/**
 * Sums the matching rows of one scan. `next` is the cursor for the next scan, or null at the end of the log.
 */
export async function sumUsageScan(
  db: Db,
  given: UsageScan,
): Promise<{ readonly totals: UsageTotals; readonly next: UsageCursor | null }> {
  const scan = await resolveScanBounds(db, given)
  if (!scan) return { totals: totalsOf(undefined), next: null }
  const row = await selectMatchingCalls(db, scan)
    .select([
      // Of rows from before the column, only the reason says that nothing was delivered.
      sql<number>`cast(coalesce(sum(case when reason = 'failed' then 0 else requests end), 0) as bigint)`.as(
        'requests',
      ),
      // The sums are cast, because PostgreSQL returns a type that the driver does not convert to a number.
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

/**
 * Sums the usage of whole days. The times and the call id of the filter are ignored, because daily sums do
 * not have them.
 */
export async function sumUsageDays(
  db: Db,
  { filter, days }: { readonly filter: UsageFilter; readonly days: UsageDays },
): Promise<UsageTotals> {
  const resolved = await resolvedFilter(db, filter)
  if (!resolved) return totalsOf(undefined)
  const [row] = await readUsageSums(db, { filter: resolved, unit: 'day', starts: days, columns: COLUMNS })
  return totalsOf(row)
}

/** Sums usage by day and model, earliest day first. */
export async function usageByDay(
  db: Db,
  { filter, days }: { readonly filter: UsageFilter; readonly days: UsageDays },
): Promise<UsageOfDay[]> {
  const resolved = await resolvedFilter(db, filter)
  if (!resolved) return []
  const query = { filter: resolved, unit: 'day', starts: days, columns: COLUMNS } as const
  const rows = await readUsageSums(db, { ...query, perStart: true, by: 'model' })
  return rows
    .map((row) => ({ day: row.at ?? 0, model: String(row.key), ...totalsOf(row) }))
    .toSorted((one, other) => one.day - other.day || (one.model < other.model ? -1 : 1))
}

/** Usage for one value of a dimension. */
interface UsageGroup extends UsageTotals {
  /** Name of the model, user, key or channel, or the day as `2026-01-31`. */
  readonly name: string
  /** Id of the user or key; undefined for other dimensions. */
  readonly id: number | undefined
}

/** Sums whole days by one dimension. The highest charge is first; days are in ascending order. */
export async function usageGroups(
  db: Db,
  { by, days }: { readonly by: UsageDimension; readonly days: UsageDays },
): Promise<UsageGroup[]> {
  const query = { filter: {}, unit: 'day', starts: days, columns: COLUMNS } as const
  if (by === 'day') {
    const rows = await readUsageSums(db, { ...query, perStart: true })
    return rows
      .toSorted((one, other) => (one.at ?? 0) - (other.at ?? 0))
      .map((row) => ({ name: dateOf(row.at ?? 0), id: undefined, ...totalsOf(row) }))
  }
  const rows = await readUsageSums(db, { ...query, by: DIMENSION_COLUMN[by] })
  const hasIds = by === 'user' || by === 'key'
  const names = await namesOfAccounts(
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

const DAY_MS = 86_400_000
const dateOf = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

function totalsOf(row: Pick<SumsRow, 'sums'> | undefined): UsageTotals {
  const [requests = 0, quota = 0, ...counts] = row?.sums ?? []
  const columns = Object.fromEntries(COUNT_COLUMNS.map((name, index) => [name, counts[index] ?? 0]))
  return { requests, quota, usage: usageFromRow(columns as unknown as UsageColumns) }
}
