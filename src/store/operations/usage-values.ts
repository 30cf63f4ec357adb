import type { SeriesPlan } from '../../domain/series-plan.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import type { Secrets } from '../secrets.ts'
import { channelIds } from './channel-names.ts'
import { keyLabels } from './key-labels.ts'
import { type Db, inChunks } from './operation.ts'
import { UNANSWERED_COLUMN } from '../sum-kinds.ts'
import { DIMENSION_COLUMN, totalsByDimensionValue } from './usage-sum-queries.ts'

/** A value that calls have in the usage log, such as the name of a model, with the number of these calls. */
export interface UsageValue {
  /** Name of the value, or id of a user, API key or channel. */
  readonly value: string | number
  readonly label: string
  readonly calls: number
}

/** Facts of calls in the usage log whose values can be listed. */
export type ListableUsageField = 'model' | 'token' | 'user' | 'channel' | 'group' | 'service_tier' | 'region'

/**
 * Lists the values that occur in calls of a period, those with the most calls first. `q` must be in the
 * label, in upper or lower case. With `withOwners`, labels of API keys begin with the name of their user.
 */
export async function usageValues(
  db: Db,
  query: {
    readonly field: ListableUsageField
    readonly filter: UsageFilter
    readonly plan: SeriesPlan
    readonly q: string
    readonly limit: number
    readonly withOwners: boolean
  },
  secrets: Secrets,
): Promise<readonly UsageValue[]> {
  const { field, filter, plan, limit, withOwners } = query
  const totals = await totalsByDimensionValue(db, filter, DIMENSION_COLUMN[field], plan, [
    'requests',
    UNANSWERED_COLUMN,
  ])
  const ranked = [...totals]
    .map(([value, sums]) => ({ value, calls: sums.reduce((sum, count) => sum + count, 0) }))
    .filter(({ calls }) => calls > 0)
    .toSorted((one, other) => other.calls - one.calls)
  const wanted = query.q.toLowerCase()
  const found: UsageValue[] = []
  // Labels are read for a limited number of values at a time, because only the first matching values are
  // listed.
  for (let from = 0; from < ranked.length; from += LABELLED_AT_ONCE) {
    const least = found[limit - 1]?.calls ?? 0
    const some = ranked.slice(from, from + LABELLED_AT_ONCE).filter(({ calls }) => calls >= least)
    if (some.length === 0) break
    const labels = await labelsOf(
      db,
      field,
      some.map(({ value }) => value),
      withOwners,
      secrets,
    )
    found.push(
      ...some
        .map((one) => ({ ...one, label: labels.get(one.value) ?? String(one.value) }))
        .filter(({ label }) => label !== '' && label.toLowerCase().includes(wanted)),
    )
    found.sort((one, other) => other.calls - one.calls || (one.label < other.label ? -1 : 1))
    found.length = Math.min(found.length, limit)
  }
  const idOf =
    field === 'channel' ? await channelIds(db, { names: found.map(({ value }) => String(value)) }) : undefined
  return found.map((one) => ({ ...one, value: idOf?.get(String(one.value)) ?? one.value }))
}

/** Number of values whose labels are read by one statement. */
const LABELLED_AT_ONCE = 500

async function labelsOf(
  db: Db,
  field: ListableUsageField,
  keys: readonly (string | number)[],
  withOwners: boolean,
  secrets: Secrets,
): Promise<ReadonlyMap<string | number, string>> {
  const ids = keys as readonly number[]
  if (field === 'user') {
    const rows = await inChunks(ids, (some) =>
      db.selectFrom('users').select(['id', 'username as name']).where('id', 'in', some).execute(),
    )
    return new Map(rows.map(({ id, name }) => [id, name]))
  }
  return field === 'token' ? keyLabels(db, ids, withOwners, secrets) : new Map()
}
