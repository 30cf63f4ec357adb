import { type CreateTableBuilder, type Kysely, type RawBuilder, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { bucketBounds, LATENCY_BUCKETS } from '../../domain/latency.ts'
import {
  FAILED_REASONS,
  LATENCY_COLUMNS,
  POINT_COLUMNS,
  POINT_TABLES,
  type PointTable,
  SLOTS_PER_DAY,
  WHOLE_REASONS,
} from '../usage-points.ts'
import { remakeFunctions } from './bank/bank-function.ts'
import { CHARGE } from './bank/charge.ts'
import { LOST } from './bank/lost.ts'
import type { ColumnTypes } from './column-types.ts'

/** Days whose half hours are summed up from the log; older ones would be removed at once. */
const SUMMED_DAYS = 100
/** Memory of SQLite while it sums up. */
const CACHE_KIB = 131_072

/**
 * Creates the sums for series and the counters of refused calls, as `schema.ts` describes them, and fills the
 * sums: half hours from the whole days that the log still has, days from the daily sums.
 */
export function usageSeries(types: ColumnTypes): Migration {
  return {
    async up(db) {
      await sql`alter table usage_days add column failed ${sql.raw(types.integer)} not null default 0`.execute(
        db,
      )
      for (const table of POINT_TABLES) await createSums(db, table, types)
      await createRefusals(db, types)
      if (!types.isShared) await createNotes(db, types)
      await (types.isShared ? sumAll(db) : withLargeCache(db, sumAll))
      if (types.isShared) await remakeFunctions(db, [...CHARGE, ...LOST])
    },
  }
}

const TIMES_AND_IDS: ReadonlySet<string> = new Set(['slot', 'day', 'user_id', 'token_id'])

async function createSums(
  db: Kysely<unknown>,
  { name, key }: PointTable,
  { integer, keyed }: ColumnTypes,
): Promise<void> {
  let table: CreateTableBuilder<string, string> = db.schema.createTable(name)
  for (const column of key)
    table = table.addColumn(column, TIMES_AND_IDS.has(column) ? integer : 'text', (made) => made.notNull())
  for (const column of [...POINT_COLUMNS, ...LATENCY_COLUMNS])
    table = table.addColumn(column, integer, (made) => made.notNull().defaultTo(0))
  await table
    .addPrimaryKeyConstraint(`${name}_key`, [...key])
    .modifyEnd(keyed)
    .execute()
}

// Only where sums are written later than their calls. A row has what the calls of one commit add to them.
async function createNotes(db: Kysely<unknown>, { counted }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('unsummed_calls')
    .addColumn('sums', 'text', (column) => column.notNull())
    .modifyEnd(counted)
    .execute()
}

async function createRefusals(db: Kysely<unknown>, { integer, keyed }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('usage_refusals')
    .addColumn('slot', integer, (column) => column.notNull())
    .addColumn('code', 'text', (column) => column.notNull())
    .addColumn('user_id', integer, (column) => column.notNull())
    .addColumn('token_id', integer, (column) => column.notNull())
    .addColumn('calls', integer, (column) => column.notNull())
    .addPrimaryKeyConstraint('usage_refusals_key', ['slot', 'code', 'user_id', 'token_id'])
    .modifyEnd(keyed)
    .execute()
}

/** Expressions over rows of the log for `POINT_COLUMNS` and `LATENCY_COLUMNS`, in their order. */
function pointSums(): RawBuilder<unknown>[] {
  const reasons = (names: readonly string[]): RawBuilder<unknown> =>
    sql`reason in (${sql.join(names.map((name) => sql.lit(name)))})`
  const count = (condition: RawBuilder<unknown>): RawBuilder<unknown> =>
    sql`sum(case when ${condition} then 1 else 0 end)`
  const within = (column: string, bucket: number): RawBuilder<unknown> => {
    const { fromMs, beforeMs } = bucketBounds(bucket)
    const end = Number.isFinite(beforeMs) ? sql` and ${sql.ref(column)} < ${sql.lit(beforeMs)}` : sql``
    return sql`${sql.ref(column)} >= ${sql.lit(fromMs)}${end}`
  }
  const buckets = Array.from({ length: LATENCY_BUCKETS }, (_, bucket) => bucket)
  return [
    count(sql`reason <> 'failed'`),
    count(reasons(FAILED_REASONS)),
    sql`sum(quota)`,
    sql`sum(input_tokens)`,
    sql`sum(cache_read_tokens)`,
    sql`sum(cache_write_5m_tokens + cache_write_1h_tokens)`,
    sql`sum(output_tokens)`,
    sql`sum(reasoning_tokens)`,
    ...buckets.map((bucket) => count(sql`${reasons(WHOLE_REASONS)} and ${within('duration_ms', bucket)}`)),
    ...buckets.map((bucket) => count(sql`reason <> 'failed' and ${within('first_byte_ms', bucket)}`)),
  ]
}

// The index is made of the rows at once, rather than row by row.
async function sumAll(db: Kysely<unknown>): Promise<void> {
  await sumHalfHours(db)
  await sumDays(db)
  await db.schema.createIndex('usage_slots_by_user').on('usage_slots').columns(['user_id', 'slot']).execute()
}

// In SQLite's own 2 MB, groups of a million calls are sorted on the disk, and pages written many times.
async function withLargeCache(
  db: Kysely<unknown>,
  work: (db: Kysely<unknown>) => Promise<void>,
): Promise<void> {
  const { rows } = await sql<{ cache_size: number }>`pragma cache_size`.execute(db)
  await sql`pragma cache_size = ${sql.lit(-CACHE_KIB)}`.execute(db)
  try {
    await work(db)
  } finally {
    await sql`pragma cache_size = ${sql.lit(rows[0]?.cache_size ?? -2000)}`.execute(db)
  }
}

const columns = (names: readonly string[]): RawBuilder<unknown> =>
  sql.join(names.map((name) => sql.ref(name)))

const ALL = [...POINT_COLUMNS, ...LATENCY_COLUMNS]

// The first day of the log may have lost rows, unless no sums are older.
async function sumHalfHours(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ first: number | null; last: number | null; oldest: number | null }>`
    select min(ended_ms) / 86400000 as first, max(ended_ms) / 86400000 as last,
      (select min(day) from usage_days) as oldest
    from usage_log`.execute(db)
  const [range] = rows
  if (!range || range.first === null || range.last === null) return
  const whole = range.oldest !== null && range.oldest < range.first ? range.first + 1 : range.first
  const firstDay = Math.max(whole, range.last - SUMMED_DAYS)
  const [slots] = POINT_TABLES
  if (!slots) return
  const key = [sql`ended_ms / 1800000`, ...slots.key.slice(1).map((name) => sql.ref(name))]
  await sql`
    insert into usage_slots (${columns([...slots.key, ...ALL])})
    select ${sql.join([...key, ...pointSums()])} from usage_log
    where ended_ms >= ${sql.lit(firstDay * 86_400_000)} group by ${sql.join(key)}`.execute(db)
  await sumAgain(db, { from: 'usage_slots', into: 'usage_slot_routes', slotsPer: 1 })
}

async function sumDays(db: Kysely<unknown>): Promise<void> {
  await sumAgain(db, { from: 'usage_slot_routes', into: 'usage_day_routes', slotsPer: SLOTS_PER_DAY })
  await sumAgain(db, { from: 'usage_slots', into: 'usage_day_keys', slotsPer: SLOTS_PER_DAY })
  const key = ['user_id', 'token_id', 'model', 'channel', 'group_name']
  await sql`
    update usage_days as d set failed = s.failed from (
      select slot / ${sql.lit(SLOTS_PER_DAY)} as day, ${columns(key)}, sum(failed) as failed from usage_slots
      group by slot / ${sql.lit(SLOTS_PER_DAY)}, ${columns(key)} having sum(failed) > 0
    ) s where d.day = s.day and ${sql.join(
      key.map((name) => sql`d.${sql.ref(name)} = s.${sql.ref(name)}`),
      sql` and `,
    )}`.execute(db)
  // Daily sums have what the log has lost, and what was imported: they replace all but failures and latency.
  for (const { name, key: tableKey } of POINT_TABLES.filter(({ key: [first] }) => first === 'day')) {
    const summed = POINT_COLUMNS.filter((column) => column !== 'failed')
    const source = (column: string): RawBuilder<unknown> =>
      column === 'cache_write_tokens'
        ? sql`sum(cache_write_5m_tokens + cache_write_1h_tokens)`
        : sql`sum(${sql.ref(column)})`
    await sql`
      insert into ${sql.table(name)} (${columns([...tableKey, ...summed])})
      select ${columns(tableKey)}, ${sql.join(summed.map(source))} from usage_days
      where true group by ${columns(tableKey)}
      on conflict (${columns(tableKey)}) do update set ${sql.join(
        summed.map((column) => sql`${sql.ref(column)} = excluded.${sql.ref(column)}`),
      )}`.execute(db)
  }
}

async function sumAgain(
  db: Kysely<unknown>,
  {
    from,
    into,
    slotsPer,
  }: { readonly from: string; readonly into: PointTable['name']; readonly slotsPer: number },
): Promise<void> {
  const key = POINT_TABLES.find(({ name }) => name === into)?.key ?? []
  const grouped = [sql`slot / ${sql.lit(slotsPer)}`, ...key.slice(1).map((name) => sql.ref(name))]
  await sql`
    insert into ${sql.table(into)} (${columns([...key, ...ALL])})
    select ${sql.join([...grouped, ...ALL.map((name) => sql`sum(${sql.ref(name)})`)])}
    from ${sql.table(from)} group by ${sql.join(grouped)}`.execute(db)
}
