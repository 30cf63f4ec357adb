import { z } from 'zod'
import { type CacheBreakCounts, cacheBreakCountsOf } from '../../domain/cache-break.ts'
import { Role } from '../../domain/role.ts'
import type { UsageEntry } from '../../domain/records/usage.ts'
import type { User } from '../../domain/records/user.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import type { UsageCursor } from '../../store/operations/usage-log.ts'
import type { SessionSums, UsageSession } from '../../store/operations/usage-sessions.ts'
import { idsFilter, textsFilter, unixSeconds } from '../input-fields.ts'
import { offsetOf, pageObject, pageOfQuery, pageQuery } from '../page.ts'
import type { ManagementServices } from '../services.ts'
import { periodOfQuery } from './list-usage.ts'
import { cacheBreaksSchema } from './usage-series.ts'

/**
 * Maximum number of rows that are summed for one page of sessions. Above it, the sums of each further session
 * cover only its newest `MIN_SUMMED_ROWS` rows.
 */
const MAX_SUMMED_ROWS = 1_000_000
const MIN_SUMMED_ROWS = 100_000
/** Number of rows that are summed at a time, so that other reads can run in between. */
const BATCH_ROWS = 20_000

const count = z.int()

/** Sums over the calls of a session; `docs/api.md: Sessions of calls`. */
export const usageSessionSchema = z.object({
  session: z.string().meta({ description: 'As in rows of the usage log' }),
  user_id: count,
  username: z.string(),
  first_call: z.string().meta({ description: 'Id of the call that began first' }),
  model_name: z.string().meta({ description: 'The model of that call' }),
  models: count.meta({ description: 'Number of different models' }),
  token_id: count,
  token_name: z.string().meta({ description: 'The key of that call' }),
  calls: count,
  input: count.meta({ description: 'Input tokens that were neither read from nor written to a cache' }),
  cached: count,
  cache_write: count,
  output: count,
  quota: count,
  cache_saved: count,
  cache_surcharge: count,
  breaks: cacheBreaksSchema,
  first_at: count.meta({ description: 'Unix seconds of the end of the first call' }),
  last_at: count.meta({ description: 'Unix seconds of the end of the last call' }),
})

/** Query parameters for sessions. `user_id` and `username` have an effect only for administrators. */
export const usageSessionsQuery = z.object({
  start_timestamp: unixSeconds(),
  end_timestamp: unixSeconds(),
  session: textsFilter(),
  user_id: idsFilter(),
  username: textsFilter(),
  ...pageQuery.shape,
})

/**
 * A page of sessions, the one with the latest call first. Administrators see those of all users, others their
 * own.
 */
export async function usageSessions(
  { store }: Pick<ManagementServices, 'store'>,
  query: z.output<typeof usageSessionsQuery>,
  user: Pick<User, 'id' | 'role'>,
) {
  const page = pageOfQuery(query)
  const { session, user_id, username } = query
  const whose = user.role >= Role.admin ? { user_id, username } : { user_id: user.id }
  const filter = { ...periodOfQuery(query), session, ...whose }
  const { total, sessions: found } = await store.read('usageSessions', {
    filter,
    offset: offsetOf(page),
    limit: page.pageSize,
  })
  const sessions: (UsageSession & SumsOfSession)[] = []
  let left = MAX_SUMMED_ROWS
  for (const one of found) {
    const sums = await sumsOf(store, filter, one, Math.max(left, MIN_SUMMED_ROWS))
    if (!sums) continue
    left -= sums.calls
    sessions.push({ ...one, ...sums })
  }
  const firstCalls = await callsById(
    store,
    sessions.map(({ first_call }) => first_call),
  )
  const items = sessions.map(
    ({ first_ms, last_ms, ...sums }): z.output<typeof usageSessionSchema> => ({
      ...sums,
      model_name: firstCalls.get(sums.first_call)?.model ?? '',
      token_id: firstCalls.get(sums.first_call)?.token_id ?? 0,
      token_name: firstCalls.get(sums.first_call)?.token_name ?? '',
      first_at: Math.floor(first_ms / 1000),
      last_at: Math.floor(last_ms / 1000),
    }),
  )
  return pageObject(page, total, items)
}

type SumsOfSession = Omit<SessionSums, 'model' | 'breaks'> & {
  readonly models: number
  readonly breaks: CacheBreakCounts
}

/** Sums over the newest rows of one session; undefined if it has no matching calls any more. */
async function sumsOf(
  store: ManagementServices['store'],
  filter: UsageFilter,
  { session, user_id: userId }: UsageSession,
  maxRows: number,
): Promise<SumsOfSession | undefined> {
  const models = new Set<string>()
  let sums: SessionSums | undefined
  let after: UsageCursor | null = null
  let left = maxRows
  do {
    const batch: { readonly sums: readonly SessionSums[]; readonly next: UsageCursor | null } =
      await store.read('sessionSums', {
        filter,
        session,
        userId,
        after,
        maxRows: Math.min(left, BATCH_ROWS),
      })
    for (const part of batch.sums) {
      models.add(part.model)
      sums = sums ? added(sums, part) : part
    }
    after = batch.next
    left -= BATCH_ROWS
  } while (after && left > 0)
  if (!sums) return undefined
  const { model: _model, ...others } = sums
  return { ...others, models: models.size, breaks: cacheBreakCountsOf(sums.breaks) }
}

function added(one: SessionSums, other: SessionSums): SessionSums {
  return {
    model: one.model,
    calls: one.calls + other.calls,
    input: one.input + other.input,
    cached: one.cached + other.cached,
    cache_write: one.cache_write + other.cache_write,
    output: one.output + other.output,
    quota: one.quota + other.quota,
    cache_saved: one.cache_saved + other.cache_saved,
    cache_surcharge: one.cache_surcharge + other.cache_surcharge,
    breaks: one.breaks.map((calls, index) => calls + (other.breaks[index] ?? 0)),
    first_call: one.first_call < other.first_call ? one.first_call : other.first_call,
    first_ms: Math.min(one.first_ms, other.first_ms),
    last_ms: Math.max(one.last_ms, other.last_ms),
  }
}

/** The rows of these calls, by id. */
export async function callsById(
  store: ManagementServices['store'],
  ids: readonly string[],
): Promise<ReadonlyMap<string, UsageEntry>> {
  if (ids.length === 0) return new Map()
  const { entries } = await store.read('listUsage', { filter: { id: ids }, offset: 0, limit: ids.length })
  return new Map(entries.map((entry) => [entry.id, entry]))
}
