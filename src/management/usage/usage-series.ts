import { z } from 'zod'
import { CACHE_BREAKS } from '../../domain/cache-break.ts'
import { type Calendar, CALENDAR_STEPS, type CalendarStep } from '../../domain/calendar.ts'
import { LATENCY_BUCKETS, percentile } from '../../domain/latency.ts'
import { type PlannedPeriod, planTimeSeries, type SeriesPlan } from '../../domain/series-plan.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import {
  SERIES_DIMENSIONS,
  SERIES_RANKS,
  type SeriesDimension,
  type SeriesLine,
  type SeriesRank,
} from '../../store/operations/usage-sum-queries.ts'
import { GatewayError } from '../../errors.ts'
import { calendarOf } from '../calendar-of.ts'
import { csvLine } from '../csv.ts'
import { unixSeconds, wholeNumber } from '../input-fields.ts'
import type { ManagementServices } from '../services.ts'
import { factsFromLog } from './call-facts.ts'
import { callFilters, type CsvFormat, ownCallFilters } from './list-usage.ts'

const count = z.int()

const pointSchema = z.object({
  requests: count.meta({ description: 'Calls that got a response' }),
  failed: count.meta({ description: 'Calls that failed or were cut short, answered in part or not at all' }),
  quota: count,
  input: count.meta({ description: 'Input tokens that were neither read from nor written to a cache' }),
  cached: count,
  cache_write: count,
  output: count,
  reasoning: count.meta({ description: 'The part of output that was reasoning' }),
  cache_saved: count.meta({ description: 'What reads of prompt caches saved, in quota units' }),
  cache_surcharge: count.meta({ description: 'What writes to prompt caches cost beyond plain input' }),
  hits: count.meta({ description: 'Calls that got the answer of an equal call' }),
  hit_saved: count.meta({ description: 'What these cost less than the calls whose answers they got' }),
})

type Point = z.output<typeof pointSchema>

const POINT_FIELDS = pointSchema.keyof().options

const points = z.array(pointSchema).meta({ description: 'One for each slot' })
const milliseconds = z.int().nullable().meta({
  description: 'Null without calls, and of users or keys whose calls are not in the usage log any more',
})
const ranks = z
  .partialRecord(z.enum(SERIES_RANKS), z.int().nullable())
  .meta({ description: 'Places from 1 by each requested figure; null = not among the top' })

/** Numbers of prompt cache breaks, by reason. */
export const cacheBreaksSchema = z
  .partialRecord(z.enum(CACHE_BREAKS), count)
  .meta({ description: 'Calls that missed a prompt cache, by reason; reasons without any are absent' })

/** Usage as a time series; `docs/api.md: Usage series`. */
export const usageSeriesSchema = z.object({
  step: z.string(),
  tz: z.string(),
  slots: z.array(z.int()).meta({ description: 'Unix seconds of the starts of the steps' }),
  series: z
    .array(z.object({ key: z.string(), label: z.string(), ranks, points }))
    .meta({ description: 'The highest by the first rank first' }),
  other: z
    .object({ points })
    .nullable()
    .meta({ description: 'The sums of all that have no series of their own; null if there are none' }),
  totals: pointSchema,
  breaks: cacheBreaksSchema,
  previous: pointSchema.meta({ description: 'The totals of the period before, of the same length' }),
  latency: z.array(
    z.object({
      p50_ms: milliseconds,
      p95_ms: milliseconds,
      first_p50_ms: milliseconds,
      first_p95_ms: milliseconds,
    }),
  ),
  exact: z
    .boolean()
    .meta({ description: 'False where days (UTC) or half hours had to stand for parts of them' }),
})

type UsageSeries = z.output<typeof usageSeriesSchema>

/** What a time series should contain. */
export interface SeriesRequest {
  readonly period: SeriesPeriod
  readonly filter: UsageFilter
  readonly by: SeriesDimension
  /** The figures by which the series with the highest values are selected; by default the charge. */
  readonly ranks?: readonly SeriesRank[]
  /** Whether labels of API keys begin with the name of their user. */
  readonly withOwners?: boolean
}

/** The usage per interval of a period, grouped by a dimension, and the totals of the preceding period. */
export async function usageSeries(
  { store }: { readonly store: Pick<ManagementServices['store'], 'read'> },
  { period, filter, by, ranks: wanted = ['quota'], withOwners = false }: SeriesRequest,
): Promise<UsageSeries> {
  const coverage = await store.read('usageSumsCoverage')
  const plan = planTimeSeries(period, coverage)
  const { fromS, previousS, starts } = period
  const before = { fromS: previousS, toS: fromS, starts: [previousS], step: 'month' as const }
  const { lines, latency, previous, breaks } = await store.read('usageSeries', {
    filter,
    by,
    top: period.top,
    ranks: wanted,
    withOwners,
    steps: starts.length,
    plan,
    previousPlan: planTimeSeries(before, coverage),
  })
  const other = by === 'none' ? undefined : lines.find(({ key }) => key === null)
  const shown = lines.filter((line) => line !== other)
  return {
    step: period.step,
    tz: period.tz,
    slots: [...starts],
    series: shown.map(({ key, label, ranks: places, points: sums }) => ({
      key: key === null ? '' : String(key),
      label,
      ranks: places,
      points: sums.map(pointOf),
    })),
    other: other ? { points: other.points.map(pointOf) } : null,
    totals: pointOf(totalOf(lines)),
    breaks,
    previous: pointOf(previous),
    latency: (
      latency?.map(splitHistograms) ??
      (await latenciesFromLog(store, { filter, plan, lines, steps: starts.length }))
    ).map(latencyOf),
    exact: plan.isExact,
  }
}

/**
 * The time series as CSV: one line for each interval of each series, then one with the total of the series, whose
 * `slot` is empty and whose `start` is `total`. The series with an empty key is the sum of all series that are
 * not listed.
 */
export function seriesCsv({ slots, series, other }: UsageSeries, { calendar, usdOf }: CsvFormat): string {
  const lines = [...series, ...(other ? [{ key: '', label: 'other', points: other.points }] : [])]
  const rows = lines.flatMap(({ key, label, points: sums }) => {
    const row = (slot: number | null, start: string, counts: readonly number[]): string =>
      csvLine([slot, start, key, label, ...counts, usdOf(counts[QUOTA] ?? 0)])
    const counted = sums.map((point) => POINT_FIELDS.map((field) => point[field]))
    return [
      ...counted.map((counts, index) => {
        const slot = slots[index] ?? 0
        return row(slot, calendar.format(slot * 1000), counts)
      }),
      row(null, 'total', totalOf([{ points: counted }])),
    ]
  })
  return [csvLine(['slot', 'start', 'key', 'label', ...POINT_FIELDS, 'cost_usd']), ...rows].join('')
}

const QUOTA = POINT_FIELDS.indexOf('quota')

function pointOf(sums: readonly number[]): Point {
  return Object.fromEntries(POINT_FIELDS.map((field, index) => [field, sums[index] ?? 0])) as Point
}

function totalOf(lines: readonly Pick<SeriesLine, 'points'>[]): number[] {
  const total: number[] = POINT_FIELDS.map(() => 0)
  for (const line of lines)
    for (const sums of line.points) for (const [index, value] of sums.entries()) total[index]! += value
  return total
}

/** Counts by bucket: durations of whole calls, and times to the first byte. */
type Histograms = readonly [total: readonly number[], first: readonly number[]]

const splitHistograms = (counts: readonly number[]): Histograms => [
  counts.slice(0, LATENCY_BUCKETS),
  counts.slice(LATENCY_BUCKETS),
]

async function latenciesFromLog(
  store: Pick<ManagementServices['store'], 'read'>,
  {
    filter,
    plan,
    lines,
    steps,
  }: {
    readonly filter: UsageFilter
    readonly plan: SeriesPlan
    readonly lines: readonly SeriesLine[]
    readonly steps: number
  },
): Promise<Histograms[]> {
  const [requests, failed] = [POINT_FIELDS.indexOf('requests'), POINT_FIELDS.indexOf('failed')]
  const counted = Array.from({ length: steps }, (_, step) => {
    const sumOf = (field: number): number =>
      lines.reduce((sum, { points: ofLine }) => sum + (ofLine[step]?.[field] ?? 0), 0)
    return { requests: sumOf(requests), failed: sumOf(failed) }
  })
  const found = await factsFromLog(store, { filter, plan, counted })
  return found.map((step) => step?.latencies ?? [[], []])
}

function latencyOf([total, first]: Histograms): UsageSeries['latency'][number] {
  return {
    p50_ms: percentile(total, 0.5),
    p95_ms: percentile(total, 0.95),
    first_p50_ms: percentile(first, 0.5),
    first_p95_ms: percentile(first, 0.95),
  }
}

const HOUR_S = 3_600

/** Number of days of a period without a start, by length of the intervals. */
const DEFAULT_DAYS: Readonly<Record<CalendarStep, number>> = { hour: 2, day: 30, month: 365 }

/** Seconds that one row of half-hour sums covers. */
const SLOT_S = 1_800
const DEFAULT_TOP = 6
const MAX_TOP = 20

/** Maximum number of intervals in a time series. */
const MAX_STEPS = 400

/**
 * Minimum length of an interval in seconds. A day may be shorter than 24 hours because of daylight saving
 * time.
 */
const SHORTEST_S: Readonly<Record<CalendarStep, number>> = {
  hour: HOUR_S,
  day: 22 * HOUR_S,
  month: 27 * 24 * HOUR_S,
}

const TOP_ERROR = `expected a whole number from 0 to ${MAX_TOP}`

/**
 * Query parameters with the period, the intervals and the format of a time series; `docs/api.md: Usage
 * series`.
 */
export const periodQuery = z.object({
  from: unixSeconds(),
  to: unixSeconds(),
  tz: z.string().max(100, { error: 'expected at most 100 characters' }).optional(),
  step: z.enum(CALENDAR_STEPS, { error: `expected one of ${CALENDAR_STEPS.join(', ')}` }).optional(),
  top: wholeNumber().refine((top) => top === undefined || top <= MAX_TOP, { error: TOP_ERROR }),
  format: z.enum(['json', 'csv'], { error: 'expected json or csv' }).optional(),
})

const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  z.enum(names, { error: `expected one of ${names.join(', ')}` }).optional()

const RANK = `expected one of ${SERIES_RANKS.join(', ')}, or several with commas`

const rank = z
  .string({ error: RANK })
  .default('quota')
  .transform((text) => text.split(','))
  .pipe(z.array(z.enum(SERIES_RANKS, { error: RANK })))
  .describe('The figures by which the highest series are returned: quota, requests, tokens, failed')

/** Query parameters for a time series of all users. */
export const seriesQuery = periodQuery.extend({ by: oneOf(SERIES_DIMENSIONS), rank, ...callFilters })

/** Query parameters for a time series of a user's own calls, without channels. */
export const ownSeriesQuery = periodQuery.extend({
  by: oneOf(['model', 'token', 'group', 'service_tier', 'region', 'none']),
  rank,
  ...ownCallFilters,
})

/** The period of a query, in the calendar of its time zone. */
export interface SeriesPeriod extends PlannedPeriod {
  readonly tz: string
  readonly calendar: Calendar
  /** Start of the preceding period, in Unix seconds. In local time, both periods have the same length. */
  readonly previousS: number
  /** Maximum number of series; all others are added up. */
  readonly top: number
}

/**
 * The period of a query. If the query names no start, the period has `DEFAULT_DAYS` days; without an end, it
 * ends now. Throws if the period is invalid.
 */
export function seriesPeriodOf(query: z.output<typeof periodQuery>, nowMs: number): SeriesPeriod {
  const { tz = 'UTC', step = 'day', top = DEFAULT_TOP } = query
  const calendar = calendarOf(tz)
  const now = Math.floor(nowMs / 1000) + 1
  const end = query.to ?? now
  // A period that ends now is extended to the end of the current half hour, so that it includes the latest
  // sums.
  const toS = end < now ? end : Math.ceil(end / SLOT_S) * SLOT_S
  const fromS = query.from ?? calendar.startOf('day', (toS - DEFAULT_DAYS[step] * 24 * HOUR_S) * 1000) / 1000
  if (toS <= fromS) throw new GatewayError('invalid_request', 'to: expected a time after "from"')
  if (fromS * 1000 > nowMs)
    throw new GatewayError('invalid_request', 'from: expected a time that is not in the future')
  const tooMany = (): never => {
    throw new GatewayError(
      'invalid_request',
      `step: expected at most ${MAX_STEPS} of them from "from" to "to"`,
    )
  }
  if (Math.floor((toS - fromS) / SHORTEST_S[step]) > MAX_STEPS * 1.1) tooMany()
  const starts: number[] = []
  for (let ms = calendar.startOf(step, fromS * 1000); ms < toS * 1000; ms = calendar.nextStart(step, ms))
    if (starts.push(ms / 1000) > MAX_STEPS) tooMany()
  const previousS = Math.max(0, calendar.previousStart(fromS * 1000, toS * 1000) / 1000)
  return { tz, step, top, calendar, fromS, toS, starts, previousS }
}
