import { sql } from 'kysely'
import { CACHE_BREAKS } from '../../domain/cache-break.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { COUNT_COLUMNS } from '../usage-row.ts'
import { type Db, namesOfAccounts } from './operation.ts'
import {
  resolveScanBounds,
  MAX_LISTED_ROWS,
  selectMatchingCalls,
  type UsageCursor,
  type UsageScan,
} from './usage-log.ts'

/** A session of a client. */
export interface UsageSession {
  /** The client's session, as the usage log stores it. */
  readonly session: string
  readonly user_id: number
  readonly username: string
}

/** Sums over calls of one session and one model. */
export interface SessionSums {
  readonly model: string
  readonly calls: number
  /** Number of input tokens, without those read from or written to a cache. */
  readonly input: number
  readonly cached: number
  readonly cache_write: number
  readonly output: number
  /** Charge of the calls in quota units; `cache_saved` and `cache_surcharge` have the same unit. */
  readonly quota: number
  readonly cache_saved: number
  readonly cache_surcharge: number
  /** Numbers of calls in the order of `CACHE_BREAKS`. */
  readonly breaks: readonly number[]
  /** Id of the call that began first. */
  readonly first_call: string
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
 * Finds the sessions of the matching calls; the session with the latest call is first. Lists only sessions that
 * occur in the newest 100,000 rows of the filter's session, user or period.
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
  return {
    total: (shown[0] ?? beyond)?.total ?? 0,
    sessions: shown.map(({ session, user_id }) => ({
      session,
      user_id,
      username: names.get(user_id) ?? '',
    })),
  }
}

/**
 * Sums by model the rows of one scan of a session, which are read over its index, the newest first. `next` is the cursor
 * for the next scan, or null at the session's end.
 */
export async function sessionSums(
  db: Db,
  { session, userId, filter, ...given }: UsageScan & { readonly session: string; readonly userId: number },
): Promise<{ readonly sums: readonly SessionSums[]; readonly next: UsageCursor | null }> {
  const scan = await resolveScanBounds(db, { ...given, filter: { ...filter, session } })
  if (!scan) return { sums: [], next: null }
  const rows = await selectMatchingCalls(db, scan)
    // The plus sign makes SQLite use the index of sessions instead of that of users, which has more rows.
    .where(sql<number>`+usage_log.user_id`, '=', userId)
    .groupBy('usage_log.model')
    .select(({ fn }) => [
      'usage_log.model',
      fn.countAll<number>().as('calls'),
      fn.min<string>('usage_log.id').as('first_call'),
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
    .execute()
  const sums = rows.map((row) => ({
    model: row.model,
    calls: row.calls,
    input: row.input,
    cached: row.cached,
    cache_write: row.cache_write,
    output: row.output,
    quota: row.quota,
    cache_saved: row.cache_saved,
    cache_surcharge: row.cache_surcharge,
    breaks: CACHE_BREAKS.map((reason) => row[`break_${reason}`]),
    first_call: row.first_call,
    first_ms: row.first_ms,
    last_ms: row.last_ms,
  }))
  return { sums, next: scan.end }
}

/** Groups the rows of a scan by their session. */
function rowsBySession(db: Db, scan: Parameters<typeof selectMatchingCalls>[1]) {
  return selectMatchingCalls(db, scan)
    .where('usage_log.session', '<>', sql.lit(''))
    .groupBy(['usage_log.session', 'usage_log.user_id'])
    .select(['usage_log.session', 'usage_log.user_id'])
}
