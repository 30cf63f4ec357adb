import { z } from 'zod'
import { FAILURE_CAUSES } from '../../domain/failure-cause.ts'
import { planTimeSeries, type SeriesPlan } from '../../domain/series-plan.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { FAILURE_DIMENSIONS, type FailureDimension } from '../../store/operations/failed-calls.ts'
import type { ManagementServices } from '../services.ts'
import { factsFromLog } from './call-facts.ts'
import { callFilters, ownCallFilters } from './list-usage.ts'
import type { FailedCounts } from './refusals.ts'
import { periodQuery, type SeriesPeriod } from './usage-series.ts'

const OWN_DIMENSIONS = ['cause', 'model', 'token', 'none'] as const

/** Query parameters for a user's own failed calls. */
export const ownFailuresQuery = periodQuery.extend({
  by: z.enum(OWN_DIMENSIONS, { error: `expected one of ${OWN_DIMENSIONS.join(', ')}` }).optional(),
  ...ownCallFilters,
})

/** Query parameters for the failed calls of all users. */
export const failuresQuery = periodQuery.extend({
  by: z.enum(FAILURE_DIMENSIONS, { error: `expected one of ${FAILURE_DIMENSIONS.join(', ')}` }).optional(),
  ...callFilters,
})

/** Numbers of failed calls per interval of a period, grouped by a dimension; `docs/api.md: Failed calls`. */
export async function failedCalls(
  { store }: { readonly store: Pick<ManagementServices['store'], 'read'> },
  {
    period,
    filter,
    by,
    withOwners,
  }: {
    readonly period: SeriesPeriod
    readonly filter: UsageFilter
    readonly by: FailureDimension
    readonly withOwners: boolean
  },
): Promise<FailedCounts> {
  const { starts, step, tz, top } = period
  const plan = planTimeSeries(period, await store.read('usageSumsCoverage'))
  const found = await store.read('failedCalls', { filter, by, top, withOwners, steps: starts.length, plan })
  const { all } = found
  const causes = found.lines ? undefined : await causesFromLog(store, { filter, plan, all })
  const lines: readonly CountedLine[] = found.lines ?? causes?.slice(0, top) ?? []
  const more = causes
    ? causes.length > top || all.some((failed, step) => failed > 0 && isUnknown(causes, step))
    : found.more
  const left = all.map((count, index) => lines.reduce((rest, line) => rest - (line.calls[index] ?? 0), count))
  return {
    step,
    tz,
    slots: [...starts],
    series:
      by === 'none'
        ? [{ key: '', label: '', calls: [...all] }]
        : lines.map(({ key, label, calls }) => ({ key: String(key), label, calls: [...calls] })),
    other: by !== 'none' && more ? { calls: left } : null,
    total: all.reduce((sum, count) => sum + count, 0),
    exact: plan.isExact,
  }
}

/** Numbers of failed calls in each step of time, for one value of a dimension; null where they are not known. */
interface CountedLine {
  readonly key: string | number
  readonly label: string
  readonly calls: readonly (number | null)[]
}

/** Whether the causes of a step's failed calls are not known. */
const isUnknown = (lines: readonly CountedLine[], step: number): boolean =>
  lines.every(({ calls }) => calls[step] === null)

/**
 * Counts the failed calls of users or keys by cause, the most frequent cause first. Their sums have no causes,
 * so these come from the usage log. The cause is empty if the client left. `all` has the number of failed calls
 * of each step; `maxRows` limits the number of rows that are read.
 */
export async function causesFromLog(
  store: Pick<ManagementServices['store'], 'read'>,
  {
    filter,
    plan,
    all,
    maxRows,
  }: {
    readonly filter: UsageFilter
    readonly plan: SeriesPlan
    readonly all: readonly number[]
    readonly maxRows?: number
  },
): Promise<CountedLine[]> {
  const counted = all.map((failed) => ({ requests: 0, failed }))
  const steps = await factsFromLog(store, {
    filter,
    plan,
    counted,
    ...(maxRows !== undefined && { maxRows }),
  })
  const calls = (index: number) => steps.map((step) => (step ? (step.causes[index] ?? 0) : null))
  const known = FAILURE_CAUSES.map((cause, index) => ({ key: cause, label: cause, calls: calls(index) }))
  const rest = steps.map((step) =>
    step ? step.causes.reduce((left, count) => left - count, step.failed) : null,
  )
  const sumOf = ({ calls: counts }: CountedLine): number =>
    counts.reduce<number>((sum, count) => sum + (count ?? 0), 0)
  return [...known, { key: '', label: '', calls: rest }]
    .filter((line) => sumOf(line) > 0)
    .toSorted((one, other) => sumOf(other) - sumOf(one))
}
