import { FAILURE_CAUSES } from '../../domain/failure-cause.ts'
import type { SeriesPlan } from '../../domain/series-plan.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { FAILURE_CAUSE_COLUMNS } from '../sum-kinds.ts'
import { isOfAccounts } from './read-sums.ts'
import type { Secrets } from '../secrets.ts'
import { channelIds } from './channel-names.ts'
import { keyLabels } from './key-labels.ts'
import { type Db, namesOfAccounts } from './operation.ts'
import { resolveFilterNames } from './usage-log.ts'
import { DIMENSION_COLUMN, rankDimensionValues, readSumsOfSeriesPlan } from './usage-sum-queries.ts'

/** Dimensions by which failed calls can be divided. */
export const FAILURE_DIMENSIONS = ['cause', 'model', 'token', 'user', 'channel', 'none'] as const

/** A dimension by which failed calls are divided; `none` for one sum of all. */
export type FailureDimension = (typeof FAILURE_DIMENSIONS)[number]

/** Number of failed calls in each step of time, for one value of a dimension. */
export interface FailedCallsLine {
  readonly key: string | number
  readonly label: string
  readonly calls: readonly number[]
}

/**
 * Counts the failed calls of a period: all of them, and those for each of the `top` values of the dimension
 * with the most failed calls. `more` says whether the dimension has further values. The cause is empty if the
 * client left. By cause, `lines` is null if the filter names users or keys, whose sums have no causes.
 */
export async function failedCalls(
  db: Db,
  query: {
    readonly filter: UsageFilter
    readonly by: FailureDimension
    readonly top: number
    /** Whether labels of API keys begin with the name of their user. */
    readonly withOwners: boolean
    readonly steps: number
    readonly plan: SeriesPlan
  },
  secrets: Secrets,
): Promise<{
  readonly all: readonly number[]
  readonly lines: readonly FailedCallsLine[] | null
  readonly more: boolean
}> {
  const { by, top, withOwners, steps, plan } = query
  const none = Array.from({ length: steps }, () => 0)
  const filter = await resolveFilterNames(db, query.filter)
  if (!filter) return { all: none, lines: [], more: false }
  const byCause = by === 'cause' && !isOfAccounts(filter)
  const columns = ['failed', ...(byCause ? FAILURE_CAUSE_COLUMNS : [])]
  const sums = (await readSumsOfSeriesPlan(db, { filter, columns }, plan, steps)).get(null) ?? []
  const all = none.map((_, step) => sums[step]?.[0] ?? 0)
  if (by === 'none') return { all, lines: [], more: false }
  if (by === 'cause' && !byCause) return { all, lines: null, more: false }
  if (by === 'cause') {
    const ranked = linesByCause(sums).toSorted((one, other) => totalOf(other) - totalOf(one))
    return { all, lines: ranked.slice(0, top), more: ranked.length > top }
  }
  const column = DIMENSION_COLUMN[by]
  const ranked = await rankDimensionValues(db, filter, column, plan, ['failed'])
  const keys = ranked.slice(0, top)
  const ofKeys =
    keys.length === 0
      ? new Map<string | number | null, number[][]>()
      : await readSumsOfSeriesPlan(db, { filter, by: column, keys, columns }, plan, steps)
  const names =
    by === 'token'
      ? await keyLabels(db, keys as readonly number[], withOwners, secrets)
      : await namesOfAccounts(db, by, keys)
  const idOf = by === 'channel' ? await channelIds(db, { names: keys.map(String) }) : undefined
  const lines = keys.map((key) => ({
    key: idOf?.get(String(key)) ?? key,
    label: names.get(key) ?? String(key),
    calls: none.map((_, step) => ofKeys.get(key)?.[step]?.[0] ?? 0),
  }))
  return { all, lines: lines.filter((line) => totalOf(line) > 0), more: ranked.length > top }
}

const totalOf = ({ calls }: FailedCallsLine): number => calls.reduce((sum, count) => sum + count, 0)

function linesByCause(sums: readonly (readonly number[])[]): FailedCallsLine[] {
  const known = FAILURE_CAUSES.map((cause, index) => ({
    key: cause as string,
    label: cause as string,
    calls: sums.map((values) => values[index + 1] ?? 0),
  }))
  const rest = sums.map(([failed = 0, ...causes]) => causes.reduce((left, count) => left - count, failed))
  return [...known, { key: '', label: '', calls: rest }].filter((line) => totalOf(line) > 0)
}
