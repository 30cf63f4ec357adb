import type { CallCounts, Usage, UsagePoint } from '../../api/usage.ts'
import {
  colouredSeries,
  MAX_SHOWN_SERIES,
  type SeriesRanking,
  sumsOfIntervals,
  topSeriesAndOthers,
} from './usage-sums.ts'

/** A series as the gateway identifies it (`key`) and as the page names it (`label`). */
export interface SeriesName {
  readonly key: string
  readonly label: string
}

/** A line of a chart, or a part of each bar. `name` is its field in the rows of the data. */
export interface ChartSeries {
  readonly name: string
  readonly label: string
  readonly color: string
  readonly isDashed?: true
  /**
   * The series by which a click on this line or part filters the page; undefined if the series cannot be used
   * as a filter.
   */
  readonly filter?: SeriesName
}

/**
 * The data of a chart, with a row for each interval of time; `at` is the start of the interval in Unix
 * seconds.
 */
export interface ChartData {
  readonly series: readonly ChartSeries[]
  readonly rows: readonly (Readonly<Record<string, number | null>> & { readonly at: number })[]
}

const OTHER_COLOR = 'var(--muted)'

/** The colour of a series by its position. */
function colorOf(place: number): string {
  return `var(--series-${place + 1})`
}

/**
 * One figure (such as the cost) of the series that have a colour on the page, and the sum of the figure over all other
 * series.
 */
export function largestSeriesData(usage: Usage, figure: SeriesRanking, otherLabel: string): ChartData {
  const coloured = colouredSeries(usage)
  return stackedData(
    usage.slots,
    topSeriesAndOthers(usage, figure, otherLabel).map(({ points, ...one }) => ({
      ...one,
      color: one.key === undefined ? OTHER_COLOR : colorOf(coloured.findIndex(({ key }) => key === one.key)),
      values: points.map((point) => point[figure]),
    })),
  )
}

/**
 * The number of failed or refused calls, for the series with the highest counts and for all others together.
 */
export function callCountSeriesData(
  { slots, series, other }: CallCounts,
  labelOf: (key: string, label: string) => string,
  { otherLabel, isFilter }: { readonly otherLabel: string; readonly isFilter: boolean },
): ChartData {
  const rest = [...series.slice(MAX_SHOWN_SERIES), ...(other ? [other] : [])]
  const sums = slots.map((_, slot) => rest.reduce((sum, { calls }) => sum + (calls[slot] ?? 0), 0))
  return stackedData(slots, [
    ...series.slice(0, MAX_SHOWN_SERIES).map(({ key, label, calls }, place) => ({
      key: isFilter ? key : '',
      color: colorOf(place),
      label: labelOf(key, label),
      values: calls,
    })),
    ...(rest.length > 0 ? [{ key: undefined, color: OTHER_COLOR, label: otherLabel, values: sums }] : []),
  ])
}

/**
 * The parts of bars. The part without a key is the sum of all others. A part with an empty key cannot be used
 * as a filter.
 */
function stackedData(
  slots: readonly number[],
  parts: readonly {
    readonly key: string | undefined
    readonly label: string
    readonly color: string
    readonly values: readonly (number | null)[]
  }[],
): ChartData {
  return {
    series: parts.map(({ key, label, color }, place) => ({
      name: `s${place}`,
      label,
      color,
      ...(key && { filter: { key, label } }),
    })),
    rows: slots.map((at, slot) => ({
      at,
      ...Object.fromEntries(parts.map(({ values }, place) => [`s${place}`, shownValue(values[slot])])),
    })),
  }
}

/** A value that is not known stays null, which charts show as a dash. */
const shownValue = (value: number | null | undefined): number | null => (value === undefined ? 0 : value)

/** One series for each of the given `fields` of usage, summed over all calls. */
export function fieldSeriesData(
  usage: Usage,
  fields: readonly { readonly label: string; readonly of: (point: UsagePoint) => number }[],
): ChartData {
  const sums = sumsOfIntervals(usage)
  return {
    series: fields.map(({ label }, place) => ({ name: `s${place}`, label, color: colorOf(place) })),
    rows: usage.slots.map((at, slot) => ({
      at,
      ...Object.fromEntries(fields.map(({ of }, place) => [`s${place}`, sums[slot] ? of(sums[slot]) : 0])),
    })),
  }
}

/**
 * Durations until the end of responses and until their first token; the lines of higher percentiles are
 * dashed.
 */
export function latencyData(
  { slots, latency }: Usage,
  labels: Readonly<Record<'p50_ms' | 'p95_ms' | 'first_p50_ms' | 'first_p95_ms', string>>,
): ChartData {
  const lines = [
    { name: 'p50_ms', color: colorOf(0) },
    { name: 'p95_ms', color: colorOf(0), isDashed: true },
    { name: 'first_p50_ms', color: colorOf(1) },
    { name: 'first_p95_ms', color: colorOf(1), isDashed: true },
  ] as const
  return {
    series: lines.map((line) => ({ ...line, label: labels[line.name] })),
    rows: slots.map((at, slot) => ({
      at,
      ...Object.fromEntries(lines.map(({ name }) => [name, latency[slot]?.[name] ?? null])),
    })),
  }
}
