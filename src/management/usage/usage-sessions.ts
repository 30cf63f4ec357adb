import { z } from 'zod'
import { Role } from '../../domain/role.ts'
import type { UsageEntry } from '../../domain/records/usage.ts'
import type { User } from '../../domain/records/user.ts'
import { idsFilter, textsFilter, unixSeconds } from '../input-fields.ts'
import { offsetOf, pageObject, pageOfQuery, pageQuery } from '../page.ts'
import type { ManagementServices } from '../services.ts'
import { periodOfQuery } from './list-usage.ts'
import { cacheBreaksSchema } from './usage-series.ts'

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
  const { total, sessions } = await store.read('usageSessions', {
    filter: { ...periodOfQuery(query), session, ...whose },
    offset: offsetOf(page),
    limit: page.pageSize,
  })
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

/** The rows of these calls, by id. */
export async function callsById(
  store: ManagementServices['store'],
  ids: readonly string[],
): Promise<ReadonlyMap<string, UsageEntry>> {
  if (ids.length === 0) return new Map()
  const { entries } = await store.read('listUsage', { filter: { id: ids }, offset: 0, limit: ids.length })
  return new Map(entries.map((entry) => [entry.id, entry]))
}
