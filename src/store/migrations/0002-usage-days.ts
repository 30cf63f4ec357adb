import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

const KEY = ['day', 'user_id', 'token_id', 'model', 'channel', 'group_name'] as const

const SUMMED = [
  'input_tokens',
  'cache_read_tokens',
  'cache_write_5m_tokens',
  'cache_write_1h_tokens',
  'output_tokens',
  'reasoning_tokens',
  'web_searches',
  'quota',
]

/** Creates the daily sums, as `schema.ts` describes them, and fills them from the usage log. */
export function usageDays(types: ColumnTypes): Migration {
  return {
    async up(db) {
      await createUsageDays(db, types)
      await sumUp(db, types)
    },
  }
}

async function createUsageDays(db: Kysely<unknown>, { integer, keyed }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('usage_days')
    .addColumn('day', integer, (column) => column.notNull())
    .addColumn('user_id', integer, (column) => column.notNull().references('users.id'))
    .addColumn('token_id', integer, (column) => column.notNull().references('tokens.id'))
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('channel', 'text', (column) => column.notNull())
    .addColumn('group_name', 'text', (column) => column.notNull())
    .addColumn('requests', integer, (column) => column.notNull())
    .addColumn('input_tokens', integer, (column) => column.notNull())
    .addColumn('cache_read_tokens', integer, (column) => column.notNull())
    .addColumn('cache_write_5m_tokens', integer, (column) => column.notNull())
    .addColumn('cache_write_1h_tokens', integer, (column) => column.notNull())
    .addColumn('output_tokens', integer, (column) => column.notNull())
    .addColumn('reasoning_tokens', integer, (column) => column.notNull())
    .addColumn('web_searches', integer, (column) => column.notNull())
    .addColumn('quota', integer, (column) => column.notNull())
    // The day comes first, so that a commit of many settlements writes few pages.
    .addPrimaryKeyConstraint('usage_days_key', [...KEY])
    .modifyEnd(keyed)
    .execute()
  await db.schema.createIndex('usage_days_by_user').on('usage_days').columns(['user_id', 'day']).execute()
}

async function sumUp(db: Kysely<unknown>, { integer }: ColumnTypes): Promise<void> {
  const day = sql`ended_ms / 86400000`
  const groups = sql.join([day, ...KEY.slice(1).map((name) => sql.ref(name))])
  const sums = sql.join(SUMMED.map((name) => sql`cast(sum(${sql.ref(name)}) as ${sql.raw(integer)})`))
  await sql`
    insert into usage_days (${sql.join([...KEY, 'requests', ...SUMMED].map((name) => sql.ref(name)))})
    select ${groups}, sum(case when reason = 'failed' then 0 else 1 end), ${sums}
    from usage_log group by ${groups}`.execute(db)
}
