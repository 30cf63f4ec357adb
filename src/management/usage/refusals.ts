import { z } from 'zod'
import { intervalIndexAt } from '../../domain/series-plan.ts'
import {
  REFUSAL_DIMENSIONS,
  type RefusalDimension,
  type RefusalFilter,
} from '../../domain/records/refusal.ts'
import type { ManagementServices } from '../services.ts'
import { equalityFilterField, idsFilter, textsFilter } from '../input-fields.ts'
import { csvLine } from '../csv.ts'
import { periodQuery, type SeriesPeriod } from './usage-series.ts'

const SLOT_S = 1_800

const by = z
  .enum(REFUSAL_DIMENSIONS, { error: `expected one of ${REFUSAL_DIMENSIONS.join(', ')}` })
  .optional()

/** Query parameters for a user's own refused calls. */
export const ownRefusalsQuery = periodQuery.extend({
  by,
  code: equalityFilterField(),
  token_id: idsFilter(),
  token_name: textsFilter(),
})

/** Query parameters for the refused calls of all users. */
export const refusalsQuery = ownRefusalsQuery.extend({ user_id: idsFilter(), username: textsFilter() })

const calls = z.array(z.int()).meta({ description: 'One for each slot' })

const seriesOf = <Calls extends z.ZodType>(ofSeries: Calls) =>
  z.object({
    step: z.string(),
    tz: z.string(),
    slots: z.array(z.int()).meta({ description: 'Unix seconds of the starts of the steps' }),
    series: z
      .array(z.object({ key: z.string(), label: z.string(), calls: ofSeries }))
      .meta({ description: 'The most calls first' }),
    other: z.object({ calls }).nullable(),
    total: z.int(),
    exact: z.boolean(),
  })

/** Numbers of refused calls as a time series; `docs/api.md: Refused calls`. */
export const refusedCallsSchema = seriesOf(calls)

/** Numbers of failed calls as a time series; `docs/api.md: Failed calls`. */
export const failedCallsSchema = seriesOf(
  z.array(z.int().nullable()).meta({
    description:
      'One for each slot; null for causes of users or keys whose calls are not in the usage log any more',
  }),
)

/** Numbers of refused calls per interval, grouped by a dimension. */
export type RefusedCounts = z.output<typeof refusedCallsSchema>

/** Numbers of failed calls per interval, grouped by a dimension; null where a cause is not known any more. */
export type FailedCounts = z.output<typeof failedCallsSchema>

/** Numbers of refused calls per interval of a period, grouped by a dimension. */
export async function refusedCalls(
  { store }: { readonly store: Pick<ManagementServices['store'], 'read'> },
  {
    period,
    filter,
    by,
  }: { readonly period: SeriesPeriod; readonly filter: RefusalFilter; readonly by: RefusalDimension },
): Promise<RefusedCounts> {
  const { fromS, toS, starts, step, tz, top } = period
  const { all, lines, ofLines, more } = await store.read('refusedCalls', {
    filter,
    by,
    top,
    first: Math.floor(fromS / SLOT_S),
    end: Math.ceil(toS / SLOT_S),
  })
  const inSteps = (rows: readonly { readonly slot: number; readonly calls: number }[]): number[] => {
    const counts = starts.map(() => 0)
    for (const row of rows) counts[intervalIndexAt(starts, row.slot * SLOT_S)]! += row.calls
    return counts
  }
  const totals = inSteps(all)
  const series = lines.map(({ key, label }) => ({
    key: String(key),
    label,
    calls: inSteps(ofLines.filter((row) => row.key === key)),
  }))
  const left = totals.map((count, index) =>
    series.reduce((rest, line) => rest - (line.calls[index] ?? 0), count),
  )
  return {
    step,
    tz,
    slots: [...starts],
    series: by === 'none' ? [{ key: '', label: '', calls: totals }] : series,
    other: by !== 'none' && more ? { calls: left } : null,
    total: totals.reduce((sum, count) => sum + count, 0),
    exact: [fromS, toS, ...starts.slice(1)].every((seconds) => seconds % SLOT_S === 0),
  }
}

/**
 * Numbers of refused or failed calls as CSV: one line for each interval of each series. The series with an
 * empty key is the sum of all series that are not listed.
 */
export function countedCallsCsv({ slots, series, other }: FailedCounts, { calendar }: SeriesPeriod): string {
  const lines = [...series, ...(other ? [{ key: '', label: 'other', calls: other.calls }] : [])]
  const rows = lines.flatMap(({ key, label, calls: counts }) =>
    counts.map((count, index) => {
      const slot = slots[index] ?? 0
      return csvLine([slot, calendar.format(slot * 1000), key, label, count])
    }),
  )
  return [csvLine(['slot', 'start', 'key', 'label', 'calls']), ...rows].join('')
}
