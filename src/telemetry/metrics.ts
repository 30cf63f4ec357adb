import { monitorEventLoopDelay } from 'node:perf_hooks'
import { secondsToFirstByte, type Settlement } from '../domain/records/usage.ts'
import { INDEPENDENT_KINDS } from '../domain/token-kinds.ts'
import { type MetricRow, METRICS, type MetricSources } from './metric-table.ts'
import { Counter, Histogram, type Metric, type Sample } from './series.ts'

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900]

/**
 * Interval, in milliseconds, at which the delay of the event loop is measured. A measured value contains the
 * interval, which is subtracted.
 */
const SAMPLE_MS = 100

/** The numbers of tokens in a usage that have a `kind` of their own in `sluice_tokens_total`. */
export const COUNTS = [...INDEPENDENT_KINDS.map(({ count }) => count), 'reasoning'] as const

type Table = typeof METRICS

/** Names of those metrics of a type that are counted in memory, not read when requested. */
type CountedMetric<Type> = {
  [Name in keyof Table]: Table[Name] extends { readonly type: Type } ? Name : never
}[keyof Table]

/** One text for each of the labels, in the same order. */
type Texts<Labels extends readonly string[]> = { readonly [Index in keyof Labels]: string }

type Series = Record<CountedMetric<'counter'>, Counter> & Record<CountedMetric<'histogram'>, Histogram>

/**
 * Metrics for the operator. Labels have only values that the configuration limits. Recording a call takes
 * only a few additions. OpenTelemetry's SDK is not used, because it creates and hashes an object of
 * attributes for each record.
 */
export class Metrics {
  /** Whether there is enough disk space to store data for users. */
  isKeeping: () => boolean = () => true
  readonly #series: Series & Readonly<Record<string, Metric>>
  readonly #loopDelay: ReturnType<typeof monitorEventLoopDelay>

  constructor(sources: Omit<MetricSources, 'isKeeping' | 'loopDelay'>) {
    this.#loopDelay = monitorEventLoopDelay({ resolution: SAMPLE_MS })
    this.#loopDelay.enable()
    const all: MetricSources = {
      ...sources,
      isKeeping: () => this.isKeeping(),
      loopDelay: (percentile) => Math.max(0, this.#loopDelay.percentile(percentile) / 1e9 - SAMPLE_MS / 1000),
    }
    const rows = Object.entries<MetricRow>(METRICS).filter(([, row]) => row.isPresent?.(all) ?? true)
    this.#series = Object.fromEntries(rows.map(([name, row]) => [name, seriesOf(row, all)])) as Series &
      Readonly<Record<string, Metric>>
  }

  /** Adds an amount to a counter with these labels. */
  add<Name extends CountedMetric<'counter'>>(
    name: Name,
    amount: number,
    ...labels: Texts<Table[Name]['labels']>
  ): void {
    this.#series[name].add(amount, labels)
  }

  /**
   * Records a settled call. `held` is the amount that was reserved for it, in quota units. `isCharged`: false if it is known
   * only later what is charged for it.
   */
  settled(settlement: Settlement, stream: boolean, durationMs: number, held: number, isCharged = true): void {
    const { model, channel, usage, quota, reason } = settlement
    const { callSeconds, firstByteSeconds } = this.#series
    const labels = [model, channel, stream ? 'true' : 'false']
    this.add('settlements', 1, reason)
    callSeconds.record(durationMs / 1000, labels)
    const firstByte = secondsToFirstByte(settlement)
    if (firstByte !== undefined) firstByteSeconds.record(firstByte, labels)
    if (quota > 0 && isCharged) this.add('quota', quota, model, channel)
    if (quota > held) this.add('holdExceeded', 1, model, channel)
    for (const kind of COUNTS) {
      const tokens = usage[kind] ?? 0
      if (tokens > 0) this.add('tokens', tokens, model, channel, kind)
    }
  }

  /** Yields all metrics, and starts a new measurement of the event loop's delay. */
  *read(): Iterable<Metric> {
    yield* Object.values(this.#series)
    this.#loopDelay.reset()
  }
}

function seriesOf(row: MetricRow, sources: MetricSources): Metric {
  const { name, help, type, labels = [], values, read } = row
  if (type === 'histogram') return new Histogram(name, help, labels, SECONDS)
  if (!read) return new Counter(name, help, labels, values && (() => values(sources)))
  return { name, help, type, samples: () => valuesOf(name, read(sources)) }
}

function valuesOf(name: string, value: ReturnType<NonNullable<MetricRow['read']>>): Sample[] {
  if (typeof value === 'number') return [{ name, labels: {}, value }]
  return value.map((sample) => ({ name, ...sample }))
}
