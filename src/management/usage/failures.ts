import { z } from 'zod'
import { planTimeSeries } from '../../domain/series-plan.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { FAILURE_DIMENSIONS, type FailureDimension } from '../../store/operations/failed-calls.ts'
import type { ManagementServices } from '../services.ts'
import { callFilters, ownCallFilters } from './list-usage.ts'
import type { CallCounts } from './refusals.ts'
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
): Promise<CallCounts> {
  const { starts, step, tz, top } = period
  const plan = planTimeSeries(period, await store.read('usageSumsCoverage'))
  const { all, lines, more } = await store.read('failedCalls', {
    filter,
    by,
    top,
    withOwners,
    steps: starts.length,
    plan,
  })
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
