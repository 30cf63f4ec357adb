import { type Kysely, sql } from 'kysely'
import type { Database } from '../row-types.ts'
import { firstCallIdAt, MAX_CALL_MS, startMsOfCall } from '../usage-id.ts'
import { isLockTimeout } from './failure.ts'

const DAY_MS = 86_400_000

/**
 * Number of days for which partitions are created in advance. Calls can then still be logged if creating
 * partitions fails for some time.
 */
const DAYS_AHEAD = 3
/** Maximum number of rows that one transaction deletes. */
const REMOVAL_BATCH = 10_000
/** Key of the advisory lock that ensures that only one node at a time maintains the log. */
export const MAINTENANCE_LOCK = 5_202_611_200_005n
/**
 * Maximum milliseconds to wait for a lock. While the creation or removal of a partition waits for its lock,
 * all other users of the log wait too.
 */
const LOCK_TIMEOUT_MS = 1_000

/** Result of `maintainUsageLog`, which is written to the log. */
export interface UsageLogMaintenance {
  /** Names of the partitions that were created. */
  readonly made: readonly string[]
  /** Names of the partitions that were dropped. */
  readonly dropped: readonly string[]
  /** Number of old rows that were deleted from the default partition. */
  readonly removed: number
  /**
   * Number of rows that remain in the default partition, because their time is wrong or is before the
   * earliest partition.
   */
  readonly astray: number
  /** Whether the maintenance ended early because of a lock timeout. The next run then continues. */
  readonly gaveWay: boolean
}

/** Result of one step, which is one transaction. */
type StepResult =
  | { readonly made: readonly string[] }
  | { readonly dropped: string }
  | { readonly removed: number }

/**
 * Creates the partitions for calls of the next days, and drops the partitions that contain only rows older
 * than `retentionDays`. Rows of the default partition are moved to other partitions, or deleted if they are
 * too old. With `retentionDays` undefined, only creates partitions. Uses the clock of the database. Several
 * nodes can run this at the same time.
 */
export async function maintainUsageLog(
  db: Kysely<Database>,
  retentionDays: number | undefined,
  signal?: AbortSignal,
): Promise<UsageLogMaintenance> {
  const made: string[] = []
  const dropped: string[] = []
  let removed = 0
  let gaveWay = false
  try {
    for (;;) {
      if (signal?.aborted) break
      const done = await db.transaction().execute((transaction) => nextStep(transaction, retentionDays))
      if (!done) break
      if ('made' in done) made.push(...done.made)
      else if ('dropped' in done) dropped.push(done.dropped)
      else removed += done.removed
    }
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    gaveWay = true
  }
  return { made, dropped, removed, astray: retentionDays === undefined ? 0 : await rowsAstray(db), gaveWay }
}

/**
 * Runs one step of the maintenance. Resolves to undefined if nothing is left to do, or if another node is
 * maintaining the log.
 */
async function nextStep(
  db: Kysely<Database>,
  retentionDays: number | undefined,
): Promise<StepResult | undefined> {
  await sql`set local lock_timeout = ${sql.raw(String(LOCK_TIMEOUT_MS))}`.execute(db)
  const { rows } = await sql<{ mine: boolean; now_ms: number }>`
    select pg_try_advisory_xact_lock(${MAINTENANCE_LOCK}) as mine,
      cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now_ms`.execute(db)
  const [{ mine, now_ms: nowMs } = { mine: false, now_ms: 0 }] = rows
  if (!mine) return undefined
  const partitions = await partitionsOfUsage(db)
  const today = Math.floor(nowMs / DAY_MS)
  const soon = { firstDay: today - 1, endDay: today + 1 + DAYS_AHEAD }
  const width = daysPerPartition(retentionDays ?? 1)
  const missing = missingPartitionRanges(partitions, soon, width)
  if (missing.length > 0) return { made: await attachPartitions(db, missing) }
  if (retentionDays === undefined) return undefined
  const cutoffMs = nowMs - retentionDays * DAY_MS
  const old = partitions.find(({ endDay }) => endDay * DAY_MS + MAX_CALL_MS <= cutoffMs)
  if (old) return dropPartition(db, old)
  const astray = await firstDayAstray(db, { firstDay: Math.floor(cutoffMs / DAY_MS), endDay: soon.endDay })
  if (astray !== undefined) {
    const day = { firstDay: astray, endDay: astray + 1 }
    return { made: await attachPartitions(db, missingPartitionRanges(partitions, day, width)) }
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

/**
 * Finds the first day of a range of which the default partition has rows. They must be moved to a partition
 * for that day.
 */
async function firstDayAstray(
  db: Kysely<Database>,
  { firstDay, endDay }: DayRange,
): Promise<number | undefined> {
  const { rows } = await sql<{ id: string | null }>`
    select min(id) as id from usage_log_default
    where id >= ${firstCallIdAt(firstDay * DAY_MS)} and id < ${firstCallIdAt(endDay * DAY_MS)}
      and id ~ '^[0-9a-f]{8}-[0-9a-f]{4}(-|$)'`.execute(db)
  const startMs = startMsOfCall(rows[0]?.id ?? '')
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

/** A partition of the usage log, with the days on which its calls began. */
interface UsagePartition extends DayRange {
  readonly name: string
}

/** Lists the partitions of the usage log except the default partition, earliest first. */
async function partitionsOfUsage(db: Kysely<Database>): Promise<UsagePartition[]> {
  const { rows } = await sql<{ name: string; bounds: string }>`
    select partition.relname as name, pg_get_expr(partition.relpartbound, partition.oid) as bounds
    from pg_inherits join pg_class as partition on partition.oid = pg_inherits.inhrelid
    where pg_inherits.inhparent = 'usage_log'::regclass`.execute(db)
  return rows
    .flatMap(({ name, bounds }) => {
      const [, from = '', to = ''] = /^FOR VALUES FROM \('(.+)'\) TO \('(.+)'\)$/.exec(bounds) ?? []
      const [firstMs, endMs] = [startMsOfCall(from), startMsOfCall(to)]
      if (firstMs === undefined || endMs === undefined) return []
      return [{ name, firstDay: Math.floor(firstMs / DAY_MS), endDay: Math.ceil(endMs / DAY_MS) }]
    })
    .sort((a, b) => a.firstDay - b.firstDay)
}

/**
 * Creates a partition for these days, and moves their rows from the default partition into it. Resolves to
 * its name, which contains the first day.
 */
async function attachPartition(db: Kysely<Database>, { firstDay, endDay }: DayRange): Promise<string> {
  const name = `usage_log_${new Date(firstDay * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`
  const [from, to] = [firstCallIdAt(firstDay * DAY_MS), firstCallIdAt(endDay * DAY_MS)]
  // The tables are locked first, so that a lock timeout happens before any row is moved.
  await sql`lock table usage_log in share update exclusive mode`.execute(db)
  await sql`lock table usage_log_default in access exclusive mode`.execute(db)
  await sql`create table ${sql.table(name)} (like usage_log including indexes)`.execute(db)
  await sql`
    with moved as (delete from usage_log_default where id >= ${from} and id < ${to} returning *)
    insert into ${sql.table(name)} select * from moved`.execute(db)
  await sql`
    alter table usage_log attach partition ${sql.table(name)} for values from (${sql.lit(from)}) to (${sql.lit(to)})
  `.execute(db)
  return name
}

/** A range of days, counted from 1970-01-01, UTC. The end is not included. */
export interface DayRange {
  readonly firstDay: number
  readonly endDay: number
}

/** Approximate maximum number of partitions for past days. */
const MAX_PARTITIONS = 200

/**
 * Returns the number of days per partition if rows are kept for `retentionDays`: one, or more to limit the
 * number of partitions.
 */
export function daysPerPartition(retentionDays: number): number {
  return Math.ceil(retentionDays / MAX_PARTITIONS)
}

/**
 * Lists the ranges of days that must be added to cover the range `wanted`, in order; each has at most `width`
 * days. Existing ranges may have any width. New ranges do not overlap them.
 */
export function missingPartitionRanges(
  covered: readonly DayRange[],
  wanted: DayRange,
  width: number,
): readonly DayRange[] {
  const missing: DayRange[] = []
  let firstDay = wanted.firstDay
  while (firstDay < wanted.endDay) {
    const here = covered.find((range) => range.firstDay <= firstDay && firstDay < range.endDay)
    if (here) {
      firstDay = here.endDay
      continue
    }
    const next = Math.min(...covered.map((range) => range.firstDay).filter((day) => day > firstDay))
    const endDay = Math.min(firstDay + width, next)
    missing.push({ firstDay, endDay })
    firstDay = endDay
  }
  return missing
}
