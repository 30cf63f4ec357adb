import { type Kysely, sql } from 'kysely'
import { USAGE } from '../../../domain/records/usage.ts'
import { COUNT_COLUMNS } from '../../usage-counts.ts'
import { LATENCY_COLUMNS, POINT_COLUMNS, POINT_TABLES, type PointTable } from '../../usage-points.ts'
import type { ColumnTypes } from '../column-types.ts'
import { recordColumns } from './record-columns.ts'
import { createTables, type Table, tableStatement } from './table.ts'

const USAGE_LOG: Table = {
  name: 'usage_log',
  columns: { ...recordColumns(USAGE), id: 'sorted primary key' },
  indexes: { usage_log_by_user: '(user_id, ended_ms)' },
}

const USAGE_DAYS: Table = {
  name: 'usage_days',
  columns: {
    day: 'integer',
    user_id: 'integer references users (id)',
    token_id: 'integer references tokens (id)',
    model: 'text',
    channel: 'text',
    group_name: 'text',
    requests: 'integer',
    failed: 'integer default 0',
    quota: 'integer',
    ...Object.fromEntries(COUNT_COLUMNS.map((name) => [name, 'integer default 0'])),
  },
  // The day comes first, so that a commit of many settlements writes few pages.
  key: ['day', 'user_id', 'token_id', 'model', 'channel', 'group_name'],
  indexes: { usage_days_by_user: '(user_id, day)' },
}

const TIMES_AND_IDS: ReadonlySet<string> = new Set(['slot', 'day', 'user_id', 'token_id'])

function pointTable({ name, key }: PointTable): Table {
  const sums = [...POINT_COLUMNS, ...LATENCY_COLUMNS]
  return {
    name,
    columns: Object.fromEntries([
      ...key.map((column) => [column, TIMES_AND_IDS.has(column) ? 'integer' : 'text']),
      ...sums.map((column) => [column, 'integer default 0']),
    ]),
    key,
    indexes: name === 'usage_slots' ? { usage_slots_by_user: '(user_id, slot)' } : {},
  }
}

const OTHERS: readonly Table[] = [
  USAGE_DAYS,
  ...POINT_TABLES.map(pointTable),
  {
    name: 'usage_refusals',
    columns: { slot: 'integer', code: 'text', user_id: 'integer', token_id: 'integer', calls: 'integer' },
    key: ['slot', 'code', 'user_id', 'token_id'],
  },
  {
    name: 'price_sets',
    columns: { version: 'text', model: 'text', group_name: 'text', content: 'text' },
    key: ['version', 'model', 'group_name'],
  },
]

/** Creates the usage log and its sums. */
export async function createUsageTables(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await (types.isShared ? createPartitionedLog(db, types) : createOwnLog(db, types))
  await createTables(db, OTHERS, types)
}

async function createOwnLog(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const { columns } = USAGE_LOG
  const references = {
    user_id: 'integer references users (id)',
    token_id: 'integer references tokens (id)',
  }
  // Sums are written later than their calls. A row has what the calls of one commit add to them.
  const notes: Table = { name: 'unsummed_calls', columns: { sums: 'text' }, rows: 'counted' }
  await createTables(db, [{ ...USAGE_LOG, columns: { ...columns, ...references } }, notes], types)
}

/**
 * Partitions by range of the id, which sorts by time. There are no foreign keys to users and tokens, whose
 * rows are never removed: with them, dropping a partition would lock these tables.
 */
async function createPartitionedLog(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await sql.raw(`${tableStatement(USAGE_LOG, types)} partition by range (id)`).execute(db)
  for (const [name, on] of Object.entries(USAGE_LOG.indexes ?? {}))
    await sql.raw(`create index ${name} on usage_log ${on}`).execute(db)
  await sql`create table usage_log_default partition of usage_log default`.execute(db)
}
