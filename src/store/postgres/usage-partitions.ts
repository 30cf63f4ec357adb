import { type Kysely, sql } from 'kysely'
import type { Database } from '../schema.ts'
import { firstIdOf, startOf } from '../usage-id.ts'
import type { DayRange } from './usage-days.ts'

const DAY_MS = 86_400_000

/** Partition of the usage log, with the days on which its calls began. */
export interface UsagePartition extends DayRange {
  readonly name: string
}

/** Lists the partitions of the usage log, earliest first, without the default partition. */
export async function partitionsOfUsage(db: Kysely<Database>): Promise<UsagePartition[]> {
  const { rows } = await sql<{ name: string; bounds: string }>`
    select partition.relname as name, pg_get_expr(partition.relpartbound, partition.oid) as bounds
    from pg_inherits join pg_class as partition on partition.oid = pg_inherits.inhrelid
    where pg_inherits.inhparent = 'usage_log'::regclass`.execute(db)
  return rows
    .flatMap(({ name, bounds }) => {
      const [, from = '', to = ''] = /^FOR VALUES FROM \('(.+)'\) TO \('(.+)'\)$/.exec(bounds) ?? []
      const [firstMs, endMs] = [startOf(from), startOf(to)]
      if (firstMs === undefined || endMs === undefined) return []
      return [{ name, firstDay: Math.floor(firstMs / DAY_MS), endDay: Math.ceil(endMs / DAY_MS) }]
    })
    .sort((a, b) => a.firstDay - b.firstDay)
}

/**
 * Makes the partition of these days, and moves their rows from the default partition into it. Resolves to its
 * name, which contains the first day.
 */
export async function attachPartition(db: Kysely<Database>, { firstDay, endDay }: DayRange): Promise<string> {
  const name = `usage_log_${new Date(firstDay * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`
  const [from, to] = [firstIdOf(firstDay * DAY_MS), firstIdOf(endDay * DAY_MS)]
  // Locks come first, so that a lock timeout happens before any row has moved.
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
