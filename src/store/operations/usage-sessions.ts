import { sql } from 'kysely'
import { type CacheBreakCounts, cacheBreakCountsOf, CACHE_BREAKS } from '../../domain/cache-break.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { COUNT_COLUMNS } from '../usage-row.ts'
import { type Db, namesOfAccounts } from './operation.ts'
import { resolveScanBounds, MAX_LISTED_ROWS, selectMatchingCalls } from './usage-log.ts'

/** Sums over the calls of one session of a client. */
export interface UsageSession {
  /** The client's session, as the usage log stores it. */
  readonly session: string
  readonly user_id: number
  readonly username: string
  readonly calls: number
  /** Number of input tokens, without those read from or written to a cache. */
  readonly input: number
  readonly cached: number
  readonly cache_write: number
  readonly output: number
  /** Charge of the session in quota units; `cache_saved` and `cache_surcharge` have the same unit. */
  readonly quota: number
  readonly cache_saved: number
  readonly cache_surcharge: number
  readonly breaks: CacheBreakCounts
  /** Id of the call that began first. */
  readonly first_call: string
  /** Number of different models. */
  readonly models: number
  /** End of the first call in Unix milliseconds. */
  readonly first_ms: number
  /** End of the last call in Unix milliseconds. */
  readonly last_ms: number
}

const CACHE_WRITES = COUNT_COLUMNS.filter((name) => name.startsWith('cache_write_')).join(' + ')

/** SQL of each sum over the calls of a session. */
const SUMS = {
  input: 'input_tokens',
  cached: 'cache_read_tokens',
  cache_write: CACHE_WRITES,
  output: 'output_tokens',
  quota: 'quota',
  cache_saved: 'cache_saved',
  cache_surcharge: 'cache_surcharge',
} as const

/**
 * Maximum number of rows that are summed for one page of sessions. Above it, the sums of each further session
 * cover only its newest `MAX_LISTED_ROWS` rows, so that no page takes much longer.
 */
const MAX_SUMMED_ROWS = 1_000_000

/**
 * Sums the matching calls by session; the session with the latest call is first. Lists only sessions that
 * occur in the newest 100,000 rows of the filter's session, user or period. The sums of the sessions on the
 * page also cover their older rows.
 */
export async function usageSessions(
  db: Db,
  {
    filter,
    offset,
    limit,
  }: { readonly filter: UsageFilter; readonly offset: number; readonly limit: number },
): Promise<{ readonly total: number; readonly sessions: readonly UsageSession[] }> {
  const scan = await resolveScanBounds(db, { filter, after: null, maxRows: MAX_LISTED_ROWS })
  if (!scan) return { total: 0, sessions: [] }
  const grouped = rowsBySession(db, scan)
    .select(({ fn }) => fn.max<number>('ended_ms').as('last_ms'))
    .as('grouped')
  const shown = await db
    .selectFrom(grouped)
    .selectAll()
    .select(sql<number>`count(*) over ()`.as('total'))
    .orderBy('last_ms', 'desc')
    .orderBy('session')
    .limit(limit)
    .offset(offset)
    .execute()
  const names = await namesOfAccounts(
    db,
    'user',
    shown.map(({ user_id }) => user_id),
  )
  // A page beyond the last one has no rows, so the total must be read separately.
  const beyond =
    shown.length === 0 && offset > 0
      ? await db
          .selectFrom(grouped)
          .select((eb) => eb.fn.countAll<number>().as('total'))
          .executeTakeFirst()
      : undefined
  const sessions: UsageSession[] = []
  let left = MAX_SUMMED_ROWS
  for (const { session, user_id } of shown) {
    const sums = await sumsOf(db, { ...scan.filter, session }, user_id, Math.max(left, MAX_LISTED_ROWS))
    if (!sums) continue
    left -= sums.calls
    sessions.push({ session, user_id, username: names.get(user_id) ?? '', ...sums })
  }
  return { total: (shown[0] ?? beyond)?.total ?? 0, sessions }
}

/** Sums over the newest rows of one session, which are read over its index. */
async function sumsOf(
  db: Db,
  filter: UsageFilter,
  userId: number,
  maxRows: number,
): Promise<Omit<UsageSession, 'session' | 'user_id' | 'username'> | undefined> {
  const scan = await resolveScanBounds(db, { filter, after: null, maxRows })
  const row = await (scan ? rowsBySession(db, scan) : undefined)
    // The plus sign makes SQLite use the index of sessions instead of that of users, which has more rows.
    ?.where(sql<number>`+usage_log.user_id`, '=', userId)
    .select(({ fn }) => [
      fn.countAll<number>().as('calls'),
      fn.min<string>('usage_log.id').as('first_call'),
      fn.count<number>('usage_log.model').distinct().as('models'),
      fn.min<number>('ended_ms').as('first_ms'),
      fn.max<number>('ended_ms').as('last_ms'),
      // The sums are cast, because PostgreSQL returns a type that the driver does not convert to a number.
      ...Object.entries(SUMS).map(([name, of]) =>
        sql<number>`cast(sum(${sql.raw(of)}) as bigint)`.as(name as keyof typeof SUMS),
      ),
      ...CACHE_BREAKS.map((reason) =>
        sql<number>`count(*) filter (where cache_break = ${sql.lit(reason)})`.as(`break_${reason}`),
      ),
    ])
    .executeTakeFirst()
  return (
    row && {
      calls: row.calls,
      input: row.input,
      cached: row.cached,
      cache_write: row.cache_write,
      output: row.output,
      quota: row.quota,
      cache_saved: row.cache_saved,
      cache_surcharge: row.cache_surcharge,
      breaks: cacheBreakCountsOf(CACHE_BREAKS.map((reason) => row[`break_${reason}`])),
      first_call: row.first_call,
      models: row.models,
      first_ms: row.first_ms,
      last_ms: row.last_ms,
    }
  )
}

/** Groups the rows of a scan by their session. */
function rowsBySession(db: Db, scan: Parameters<typeof selectMatchingCalls>[1]) {
  return selectMatchingCalls(db, scan)
    .where('usage_log.session', '<>', sql.lit(''))
    .groupBy(['usage_log.session', 'usage_log.user_id'])
    .select(['usage_log.session', 'usage_log.user_id'])
}
