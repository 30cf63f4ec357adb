import type { Usage, UsagePoint } from '../../api/usage.ts'

/** The sums of a series over all intervals. */
export interface SeriesSum {
  /** The key by which the gateway identifies the series; empty for the row "other". */
  readonly key: string
  readonly label: string
  readonly sum: UsagePoint
}

/** A series as a chart shows it. */
export interface ShownSeries {
  /** The key by which the gateway identifies the series; undefined for the sum of all other series. */
  readonly key: string | undefined
  readonly label: string
  readonly points: readonly UsagePoint[]
}

/** The number of series that have a colour of their own; all others are added up. */
export const MAX_SHOWN_SERIES = 6

export const ZERO_USAGE_POINT: UsagePoint = {
  requests: 0,
  failed: 0,
  quota: 0,
  input: 0,
  cached: 0,
  cache_write: 0,
  output: 0,
  reasoning: 0,
  cache_saved: 0,
  cache_surcharge: 0,
  hits: 0,
  hit_saved: 0,
}

/** Adds up the sums of several intervals, field by field. Each field is an integer. */
export function sumOfUsagePoints(points: readonly UsagePoint[]): UsagePoint {
  return points.reduce(added, ZERO_USAGE_POINT)
}

function added(one: UsagePoint, other: UsagePoint): UsagePoint {
  return {
    requests: one.requests + other.requests,
    failed: one.failed + other.failed,
    quota: one.quota + other.quota,
    input: one.input + other.input,
    cached: one.cached + other.cached,
    cache_write: one.cache_write + other.cache_write,
    output: one.output + other.output,
    reasoning: one.reasoning + other.reasoning,
    cache_saved: one.cache_saved + other.cache_saved,
    cache_surcharge: one.cache_surcharge + other.cache_surcharge,
    hits: one.hits + other.hits,
    hit_saved: one.hit_saved + other.hit_saved,
  }
}

/** All tokens of an interval; `reasoning` is left out because it is a part of `output`. */
export function tokensOfUsagePoint({ input, cached, cache_write, output }: UsagePoint): number {
  return input + cached + cache_write + output
}

/** The totals of each series, and of all other series if there are any. */
export function sumsOfSeries({ series, other }: Usage, otherLabel: string): readonly SeriesSum[] {
  const rows = series.map(({ key, label, points }) => ({ key, label, sum: sumOfUsagePoints(points) }))
  return other ? [...rows, { key: '', label: otherLabel, sum: sumOfUsagePoints(other.points) }] : rows
}

/** The figures by which the gateway ranks series. */
export type SeriesRanking = 'quota' | 'requests' | 'failed'

/** In this order, the highest series by each figure get colours while there are some left. */
const COLOURED_BY: readonly SeriesRanking[] = ['quota', 'requests', 'failed']

/** The series that have colours, the same ones in all charts of a page. */
export function colouredSeries({ series }: Usage): Usage['series'] {
  const highest = COLOURED_BY.flatMap((rank) => {
    const placeOf = ({ ranks }: Usage['series'][number]): number => ranks[rank] ?? Number.POSITIVE_INFINITY
    return series
      .filter((one) => placeOf(one) <= MAX_SHOWN_SERIES)
      .toSorted((one, another) => placeOf(one) - placeOf(another))
  })
  return [...new Set(highest)].slice(0, MAX_SHOWN_SERIES)
}

/**
 * The series of a chart: those with a colour, in the order of the colours, and the sum of all others in each interval.
 */
export function topSeriesAndOthers(
  usage: Usage,
  rank: SeriesRanking,
  otherLabel: string,
): readonly ShownSeries[] {
  const { series, other, slots } = usage
  const shown = colouredSeries(usage)
  const rest = [...series.filter((one) => !shown.includes(one)), ...(other ? [other] : [])]
  if (rest.length === 0) return shown
  const points = slots.map((_, slot) =>
    sumOfUsagePoints(rest.map((one) => one.points[slot] ?? ZERO_USAGE_POINT)),
  )
  // The sum of all other series is not shown if it is 0 in each interval.
  if (points.every((point) => point[rank] === 0)) return shown
  return [...shown, { key: undefined, label: otherLabel, points }]
}

export function sumsOfIntervals({ series, other, slots }: Usage): readonly UsagePoint[] {
  const all = [...series, ...(other ? [other] : [])]
  return slots.map((_, slot) => sumOfUsagePoints(all.map(({ points }) => points[slot] ?? ZERO_USAGE_POINT)))
}

/** Minimum number of calls in the previous period for a change in per cent to be shown. */
const MIN_COMPARED_CALLS = 10
/** Growth by more than this factor is not shown, because there was almost nothing before. */
const MAX_GROWTH = 10

/**
 * The change since the previous period, as a fraction (0.5 for 50 % more); undefined if the previous period
 * had too little to compare with. `calls` is the number of its calls, answered and failed.
 */
export function relativeChange(now: number, before: number, calls: number): number | undefined {
  if (before === 0 || calls < MIN_COMPARED_CALLS || now > before * MAX_GROWTH) return undefined
  return (now - before) / before
}
