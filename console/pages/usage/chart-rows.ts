import type { CallCounts, Usage, UsagePoint } from '../../api/usage.ts'
import { type ChartRank, SHOWN_SERIES, shownSeries, slotSums } from './sums.ts'

/** What a series is called, by the gateway and on the page. */
export interface SeriesName {
  readonly key: string
  readonly label: string
}

/** A line, or a part of a bar. `name` is its field in the rows. */
export interface ChartSeries {
  readonly name: string
  readonly label: string
  readonly color: string
  readonly isDashed?: true
  /** The series that a click on it filters by. */
  readonly filter?: SeriesName
}

/** The data of a chart: a row for each interval, `at` being its start in Unix seconds. */
export interface ChartData {
  readonly series: readonly ChartSeries[]
  readonly rows: readonly (Readonly<Record<string, number | null>> & { readonly at: number })[]
}

const OTHER_COLOR = 'var(--muted)'

/** The colour of a series by its position. */
function colorOf(place: number): string {
  return `var(--series-${place + 1})`
}

/** One figure of the series in which it is highest, and its sum over all others. */
export function largestSeriesData(usage: Usage, figure: ChartRank, otherLabel: string): ChartData {
  return stackedData(
    usage.slots,
    shownSeries(usage, figure, otherLabel).map(({ points, ...one }) => ({
      ...one,
      values: points.map((point) => point[figure]),
    })),
  )
}

/** Failed or refused calls of the series with the highest counts, and the sum of all others. */
export function countedData(
  { slots, series, other }: CallCounts,
  labelOf: (key: string, label: string) => string,
  { otherLabel, isFilter }: { readonly otherLabel: string; readonly isFilter: boolean },
): ChartData {
  const rest = [...series.slice(SHOWN_SERIES), ...(other ? [other] : [])]
  const sums = slots.map((_, slot) => rest.reduce((sum, { calls }) => sum + (calls[slot] ?? 0), 0))
  return stackedData(slots, [
    ...series.slice(0, SHOWN_SERIES).map(({ key, label, calls }) => ({
      key: isFilter ? key : '',
      label: labelOf(key, label),
      values: calls,
    })),
    ...(rest.length > 0 ? [{ key: undefined, label: otherLabel, values: sums }] : []),
  ])
}

/** Parts of bars. The part without a key sums up all others; an empty key cannot be used as a filter. */
function stackedData(
  slots: readonly number[],
  parts: readonly {
    readonly key: string | undefined
    readonly label: string
    readonly values: readonly number[]
  }[],
): ChartData {
  return {
    series: parts.map(({ key, label }, place) => ({
      name: `s${place}`,
      label,
      color: key === undefined || place >= SHOWN_SERIES ? OTHER_COLOR : colorOf(place),
      ...(key && { filter: { key, label } }),
    })),
    rows: slots.map((at, slot) => ({
      at,
      ...Object.fromEntries(parts.map(({ values }, place) => [`s${place}`, values[slot] ?? 0])),
    })),
  }
}

/** Fields of all calls together, with one series each. */
export function fieldSeriesData(
  usage: Usage,
  fields: readonly { readonly label: string; readonly of: (point: UsagePoint) => number }[],
): ChartData {
  const sums = slotSums(usage)
  return {
    series: fields.map(({ label }, place) => ({ name: `s${place}`, label, color: colorOf(place) })),
    rows: usage.slots.map((at, slot) => ({
      at,
      ...Object.fromEntries(fields.map(({ of }, place) => [`s${place}`, sums[slot] ? of(sums[slot]) : 0])),
    })),
  }
}

/** Durations of whole responses and of first tokens; the lines of slower quantiles are dashed. */
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
