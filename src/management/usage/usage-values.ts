import { z } from 'zod'
import { FAILURE_CAUSES } from '../../domain/failure-cause.ts'
import { planTimeSeries, type PlannedPeriod, type SeriesPlan } from '../../domain/series-plan.ts'
import { unixSeconds } from '../input-fields.ts'
import { causesFromLog } from './failures.ts'
import type { ManagementServices } from '../services.ts'

const OWN_FIELDS = ['model', 'token', 'group', 'service_tier', 'region', 'cause', 'code'] as const
const FIELDS = [...OWN_FIELDS, 'user', 'channel'] as const
/** Maximum number of values of a field that are returned. */
const MAX_VALUES = 50
/** Maximum number of rows of the usage log that are read for the causes of one user's failed calls. */
const MAX_ROWS = 100_000
const SLOT_S = 1_800

const period = {
  q: z.string().max(200, { error: 'expected at most 200 characters' }).optional(),
  start_timestamp: unixSeconds(),
  end_timestamp: unixSeconds(),
}

/** Query parameters for a list of the values that a field has in a user's own calls. */
export const ownValuesQuery = z.object({
  field: z.enum(OWN_FIELDS, { error: `expected one of ${OWN_FIELDS.join(', ')}` }),
  ...period,
})

/** Query parameters for a list of the values that a field has in the calls of all users. */
export const valuesQuery = z.object({
  field: z.enum(FIELDS, { error: `expected one of ${FIELDS.join(', ')}` }),
  ...period,
})

/** A value that can be used in a filter; `docs/api.md: Usage log`. */
export const usageValueSchema = z.object({
  value: z.string(),
  label: z.string(),
  calls: z.int(),
})

type Values = readonly z.output<typeof usageValueSchema>[]

/** The values that a field has in the calls of a period, those with the most calls first. */
export async function usageValues(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
  query: z.output<typeof valuesQuery>,
  userId?: number,
): Promise<Values> {
  const { field, q = '', start_timestamp: start = 0, end_timestamp: end } = query
  const toS = (Math.floor((end ? end : nowMs() / 1000) / SLOT_S) + 1) * SLOT_S
  const fromS = Math.floor(Math.min(start, toS - 1) / SLOT_S) * SLOT_S
  const filter = { user_id: userId }
  const top = MAX_VALUES
  if (field === 'code') {
    const range = { first: fromS / SLOT_S, end: toS / SLOT_S }
    const { lines, ofLines } = await store.read('refusedCalls', { filter, by: 'code', top, ...range })
    return matching(q, lines, (key) =>
      total(ofLines.filter((row) => row.key === key).map(({ calls }) => calls)),
    )
  }
  const plan = await planOf(store, { fromS, toS, starts: [fromS], step: 'month' })
  if (field === 'cause') {
    const by = { filter, by: field, top: FAILURE_CAUSES.length + 1, withOwners: false, steps: 1, plan }
    // Of one user they come from the latest rows, of which calls can be selected by cause.
    const { lines } = await store.read('failedCalls', by)
    const found = lines ?? (await causesFromLog(store, { filter, plan, all: [0], maxRows: MAX_ROWS }))
    const known = found.filter(({ key }) => key !== '')
    return matching(q, known, (key) =>
      total((known.find((line) => line.key === key)?.calls ?? []).map((count) => count ?? 0)),
    )
  }
  const withOwners = userId === undefined
  const found = await store.read('usageValues', { field, filter, plan, q, limit: MAX_VALUES, withOwners })
  return found.map(({ value, ...others }) => ({ value: String(value), ...others }))
}

async function planOf(store: ManagementServices['store'], given: PlannedPeriod): Promise<SeriesPlan> {
  const coverage = await store.read('usageSumsCoverage')
  const firstS = Math.min(coverage.firstDay, Math.floor(given.toS / 86_400)) * 86_400
  const fromS = Math.max(given.fromS, firstS)
  return planTimeSeries({ ...given, fromS, starts: [fromS] }, coverage)
}

function matching(
  q: string,
  lines: readonly { readonly key: string | number }[],
  callsOf: (key: string | number) => number,
): Values {
  return lines
    .map(({ key }) => ({ value: String(key), label: String(key), calls: callsOf(key) }))
    .filter(({ label }) => label.toLowerCase().includes(q.toLowerCase()))
    .toSorted((one, other) => other.calls - one.calls)
    .slice(0, MAX_VALUES)
}

const total = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0)
