import { type Kysely, sql } from 'kysely'
import { REFUSAL, REFUSAL_KEY } from '../../../domain/records/refusal.ts'
import { USAGE } from '../../../domain/records/usage.ts'
import { LATENCY_COLUMNS, SUM_COLUMNS, SUM_KEY, SUM_KINDS } from '../../sum-kinds.ts'
import type { ColumnTypes } from '../column-types.ts'
import { recordColumns } from './record-columns.ts'
import { createTables, type Table } from './table.ts'

const USAGE_LOG: Table = {
  name: 'usage_log',
  columns: { ...recordColumns(USAGE), id: 'sorted primary key' },
  indexes: { usage_log_by_user: '(user_id, ended_ms)' },
}

const USAGE_SUMS: Table = {
  name: 'usage_sums',
  columns: {
    kind: 'small',
    start: 'integer',
    user_id: 'integer',
    token_id: 'integer',
    model: 'text',
    channel: 'text',
    group_name: 'text',
    ...Object.fromEntries(
      SUM_COLUMNS.map((name) => [
        name,
        LATENCY_COLUMNS.includes(name) ? 'small default 0' : 'integer default 0',
      ]),
    ),
  },
  // The time comes first in each kind, so that a commit of many calls writes few pages.
  key: SUM_KEY,
}

const OTHERS: readonly Table[] = [
  { name: 'usage_refusals', columns: recordColumns(REFUSAL), key: REFUSAL_KEY },
  {
    name: 'price_sets',
    columns: { version: 'text', model: 'text', group_name: 'text', content: 'text' },
    key: ['version', 'model', 'group_name'],
  },
]

/** Creates the usage log and its sums. */
export async function createUsageTables(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await (types.isShared ? createPartitioned(db, types) : createOwn(db, types))
  await createTables(db, OTHERS, types)
}

async function createOwn(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const { columns } = USAGE_LOG
  const references = {
    user_id: 'integer references users (id)',
    token_id: 'integer references tokens (id)',
  }
  // Sums are written later than their calls. A row has what the calls of one commit add to them.
  const notes: Table = { name: 'unsummed_calls', columns: { sums: 'text' }, rows: 'counted' }
  await createTables(db, [{ ...USAGE_LOG, columns: { ...columns, ...references } }, USAGE_SUMS, notes], types)
}

/**
 * Partitions the log by range of the id, which sorts by time, and the sums by their kind. The log has no
 * foreign keys to users and tokens, whose rows are never removed: with them, dropping a partition would lock
 * these tables.
 */
async function createPartitioned(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await createTables(db, [{ ...USAGE_LOG, partitionedBy: 'range (id)' }], types)
  await sql`create table usage_log_default partition of usage_log default`.execute(db)
  await createTables(db, [{ ...USAGE_SUMS, partitionedBy: 'list (kind)' }], types)
  // Each report changes many sums: with room in its page for the new row, no index has to change.
  for (const { kind, name } of SUM_KINDS)
    await sql`
      create table ${sql.table(`usage_sums_${name}`)} partition of usage_sums for values in (${sql.lit(kind)})
      with (fillfactor = 80)`.execute(db)
}
