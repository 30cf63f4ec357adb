import { type Kysely, sql } from 'kysely'
import type { Database } from '../schema.ts'
import { firstIdOf, startOf } from '../usage-id.ts'
import { isLockTimeout } from './failure.ts'
import { type DayRange, daysPerPartition, missingRanges } from './usage-days.ts'
import { attachPartition, partitionsOfUsage, type UsagePartition } from './usage-partitions.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

/** Partitions are there so long before their first call, in case nothing can be made for a while. */
const DAYS_AHEAD = 3
/** A call ends in the partition of its start; so much later than the last start its last call has ended. */
const MAX_CALL_MS = 6 * HOUR_MS
/** Rows that are removed one by one, in one transaction. */
const REMOVAL_BATCH = 10_000
/** Who keeps the log at the moment, of all nodes: any number that nobody else takes for a lock. */
export const MAINTENANCE_LOCK = 5_202_611_200_005n
/** To make or drop a partition, all wait who use the log; this long, and it is tried again later. */
const LOCK_TIMEOUT_MS = 1_000

/** What a run of `keepUsageLog` did. */
export interface UsageLogMaintenance {
  /** Names of partitions that were made. */
  readonly made: readonly string[]
  /** Names of partitions that were dropped. */
  readonly dropped: readonly string[]
  /** Rows that had no partition of their own, and were old enough to be removed. */
  readonly removed: number
  /** Rows that have none now: of calls that a wrong clock dated, or older than what has partitions. */
  readonly astray: number
  /** It ended early, as somebody used the log for too long: what is left is for the next run. */
  readonly gaveWay: boolean
}

/** One thing that a transaction did; nothing = there is nothing left to do, or another node is doing it. */
type StepResult = { readonly made: readonly string[] } | { readonly dropped: string } | { readonly removed: number }

/**
 * Makes the partitions that calls of the next days need, drops those that hold nothing but what is older than
 * `keptDays`, and does the same for rows that have no partition of their own. `keptDays` undefined: only
 * makes those of the next days. The database's clock counts. Any number of nodes may run it at once, it may
 * be killed at any point, and it waits for nobody for longer than a second.
 */
export async function maintainUsageLog(
  db: Kysely<Database>,
  keptDays: number | undefined,
  signal?: AbortSignal,
): Promise<UsageLogMaintenance> {
  const made: string[] = []
  const dropped: string[] = []
  let removed = 0
  let gaveWay = false
  try {
    for (;;) {
      if (signal?.aborted) break
      const done = await db.transaction().execute((transaction) => nextStep(transaction, keptDays))
      if (!done) break
      if ('made' in done) made.push(...done.made)
      else if ('dropped' in done) dropped.push(done.dropped)
      else removed += done.removed
    }
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    gaveWay = true
  }
  return { made, dropped, removed, astray: keptDays === undefined ? 0 : await rowsAstray(db), gaveWay }
}

async function nextStep(db: Kysely<Database>, keptDays: number | undefined): Promise<StepResult | undefined> {
  await sql`set local lock_timeout = ${sql.raw(String(LOCK_TIMEOUT_MS))}`.execute(db)
  const { rows } = await sql<{ mine: boolean; now_ms: number }>`
    select pg_try_advisory_xact_lock(${MAINTENANCE_LOCK}) as mine,
      cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now_ms`.execute(db)
  const [{ mine, now_ms: nowMs } = { mine: false, now_ms: 0 }] = rows
  if (!mine) return undefined
  const partitions = await partitionsOfUsage(db)
  const today = Math.floor(nowMs / DAY_MS)
  const soon = { firstDay: today - 1, endDay: today + 1 + DAYS_AHEAD }
  const width = daysPerPartition(keptDays ?? 1)
  const missing = missingRanges(partitions, soon, width)
  if (missing.length > 0) return { made: await attachPartitions(db, missing) }
  if (keptDays === undefined) return undefined
  const cutoffMs = nowMs - keptDays * DAY_MS
  const old = partitions.find(({ endDay }) => endDay * DAY_MS + MAX_CALL_MS <= cutoffMs)
  if (old) return dropPartition(db, old)
  const astray = await firstDayAstray(db, { firstDay: Math.floor(cutoffMs / DAY_MS), endDay: soon.endDay })
  if (astray !== undefined) {
    const day = { firstDay: astray, endDay: astray + 1 }
    return { made: await attachPartitions(db, missingRanges(partitions, day, width)) }
  }
  const removed = await removeOld(db, cutoffMs)
  return removed > 0 ? { removed } : undefined
}

async function attachPartitions(db: Kysely<Database>, ranges: readonly DayRange[]): Promise<string[]> {
  const names: string[] = []
  for (const range of ranges) names.push(await attachPartition(db, range))
  return names
}

async function dropPartition(db: Kysely<Database>, { name }: UsagePartition): Promise<StepResult> {
  await sql`drop table ${sql.table(name)}`.execute(db)
  return { dropped: name }
}

/** The first day of which there are rows without a partition that could have one. */
async function firstDayAstray(
  db: Kysely<Database>,
  { firstDay, endDay }: DayRange,
): Promise<number | undefined> {
  const { rows } = await sql<{ id: string | null }>`
    select min(id) as id from usage_log_default
    where id >= ${firstIdOf(firstDay * DAY_MS)} and id < ${firstIdOf(endDay * DAY_MS)}
      and id ~ '^[0-9a-f]{8}-[0-9a-f]{4}(-|$)'`.execute(db)
  const startMs = startOf(rows[0]?.id ?? '')
  return startMs === undefined ? undefined : Math.floor(startMs / DAY_MS)
}

async function removeOld(db: Kysely<Database>, cutoffMs: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from usage_log_default where id in (
      select id from usage_log_default where ended_ms < ${cutoffMs} limit ${REMOVAL_BATCH}
    )`.execute(db)
  return Number(numAffectedRows ?? 0)
}

async function rowsAstray(db: Kysely<Database>): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from usage_log_default`.execute(db)
  return rows[0]?.count ?? 0
}
