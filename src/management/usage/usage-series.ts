import { z } from 'zod'
import { LATENCY_BUCKETS, percentile } from '../../domain/latency.ts'
import { planSeries } from '../../domain/series-plan.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import type { SeriesDimension, SeriesLine } from '../../store/operations/usage-sums.ts'
import type { ManagementParts } from '../parts.ts'
import { csvLine } from './csv.ts'
import type { SeriesPeriod } from './series-query.ts'

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
})

type Point = z.output<typeof pointSchema>

const POINT_FIELDS = pointSchema.keyof().options

const points = z.array(pointSchema).meta({ description: 'One for each slot' })
const milliseconds = z.int().nullable()

/** A series of usage; `docs/api.md: Usage series`. */
export const usageSeriesSchema = z.object({
  step: z.string(),
  tz: z.string(),
  slots: z.array(z.int()).meta({ description: 'Unix seconds of the starts of the steps' }),
  series: z
    .array(z.object({ key: z.string(), label: z.string(), points }))
    .meta({ description: 'The highest charge first' }),
  other: z
    .object({ points })
    .nullable()
    .meta({ description: 'The sums of all that have no series of their own; null if there are none' }),
  totals: pointSchema,
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

/** Request for a series. */
export interface SeriesRequest {
  readonly period: SeriesPeriod
  readonly filter: UsageFilter
  readonly by: SeriesDimension
}

/** The usage of a period by step and dimension, with the totals of the preceding period. */
export async function usageSeries(
  { store }: { readonly store: Pick<ManagementParts['store'], 'read'> },
  { period, filter, by }: SeriesRequest,
): Promise<UsageSeries> {
  const coverage = await store.read('usageCoverage')
  const plan = planSeries(period, coverage)
  const { fromS, previousS, starts } = period
  const before = { fromS: previousS, toS: fromS, starts: [previousS], step: 'month' as const }
  const { lines, latency, previous } = await store.read('usageSeries', {
    filter,
    by,
    top: period.top,
    steps: starts.length,
    plan,
    previousPlan: planSeries(before, coverage),
  })
  const other = by === 'none' ? undefined : lines.find(({ key }) => key === null)
  const shown = lines.filter((line) => line !== other)
  return {
    step: period.step,
    tz: period.tz,
    slots: [...starts],
    series: shown.map(({ key, label, points: sums }) => ({
      key: key === null ? '' : String(key),
      label,
      points: sums.map(pointOf),
    })),
    other: other ? { points: other.points.map(pointOf) } : null,
    totals: pointOf(totalOf(lines)),
    previous: pointOf(previous),
    latency: latency.map(latencyOf),
    exact: plan.isExact,
  }
}

/**
 * The series as CSV: a line for each step of each series, and of the sum of all others, whose key is empty.
 */
export function seriesCsv({ slots, series, other }: UsageSeries, { calendar }: SeriesPeriod): string {
  const lines = [...series, ...(other ? [{ key: '', label: 'other', points: other.points }] : [])]
  const rows = lines.flatMap(({ key, label, points: sums }) =>
    sums.map((point, index) => {
      const slot = slots[index] ?? 0
      return csvLine([
        slot,
        calendar.format(slot * 1000),
        key,
        label,
        ...POINT_FIELDS.map((field) => point[field]),
      ])
    }),
  )
  return [csvLine(['slot', 'start', 'key', 'label', ...POINT_FIELDS]), ...rows].join('')
}

function pointOf(sums: readonly number[]): Point {
  return Object.fromEntries(POINT_FIELDS.map((field, index) => [field, sums[index] ?? 0])) as Point
}

function totalOf(lines: readonly SeriesLine[]): number[] {
  const total: number[] = POINT_FIELDS.map(() => 0)
  for (const line of lines)
    for (const sums of line.points) for (const [index, value] of sums.entries()) total[index]! += value
  return total
}

function latencyOf(counts: readonly number[]): UsageSeries['latency'][number] {
  const [total, first] = [counts.slice(0, LATENCY_BUCKETS), counts.slice(LATENCY_BUCKETS)]
  return {
    p50_ms: percentile(total, 0.5),
    p95_ms: percentile(total, 0.95),
    first_p50_ms: percentile(first, 0.5),
    first_p95_ms: percentile(first, 0.95),
  }
}
