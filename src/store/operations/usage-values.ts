import type { SeriesPlan } from '../../domain/series-plan.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import type { Secrets } from '../secrets.ts'
import { channelIds } from './channel-names.ts'
import { keyLabels } from './key-labels.ts'
import { type Db, inChunks } from './operation.ts'
import { UNANSWERED } from '../sum-kinds.ts'
import { COLUMN_OF, totalsByKey } from './usage-sum-queries.ts'

/** A value of a field of calls. */
export interface UsageValue {
  /** Name, or id of a user, API key or channel. */
  readonly value: string | number
  readonly label: string
  readonly calls: number
}

/** Fields whose values are listed. */
export type ValuedField = 'model' | 'token' | 'user' | 'channel' | 'group' | 'service_tier' | 'region'

/**
 * Lists the values that calls of a period have, those with the most calls first, with `q` in their label in any
 * case. `withOwners`: labels of API keys begin with their user.
 */
export async function usageValues(
  db: Db,
  query: {
    readonly field: ValuedField
    readonly filter: UsageFilter
    readonly plan: SeriesPlan
    readonly q: string
    readonly limit: number
    readonly withOwners: boolean
  },
  secrets: Secrets,
): Promise<readonly UsageValue[]> {
  const { field, filter, plan, limit, withOwners } = query
  const totals = await totalsByKey(db, filter, COLUMN_OF[field], plan, ['requests', UNANSWERED])
  const labels = await labelsOf(db, field, [...totals.keys()], withOwners, secrets)
  const wanted = query.q.toLowerCase()
  const idOf =
    field === 'channel' ? await channelIds(db, { names: [...totals.keys()].map(String) }) : undefined
  return [...totals]
    .map(([value, sums]) => ({
      value: idOf?.get(String(value)) ?? value,
      label: labels.get(value) ?? String(value),
      calls: sums.reduce((sum, count) => sum + count, 0),
    }))
    .filter(({ label, calls }) => calls > 0 && label !== '' && label.toLowerCase().includes(wanted))
    .toSorted((one, other) => other.calls - one.calls || (one.label < other.label ? -1 : 1))
    .slice(0, limit)
}

async function labelsOf(
  db: Db,
  field: ValuedField,
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
