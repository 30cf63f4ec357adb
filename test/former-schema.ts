import { changesWithBudgets } from '../src/store/migrations/bank/changes.ts'
import { POINT_TABLES } from '../src/store/usage-points.ts'
import type { Engine, TestDatabase } from './store-engines.ts'

const TABLES = [...POINT_TABLES.map(({ name }) => name), 'usage_refusals', 'price_sets']

/** Tables of later versions, of each database. */
const LATER_TABLES = {
  SQLite: ['audit_log', 'declared_settings', 'kept_sums'],
  PostgreSQL: [
    'audit_log',
    'declared_settings',
    'call_generation',
    'call_nodes',
    'call_places',
    'kept_sums',
    'message_key',
  ],
} as const

/** Takes a schema back to the version before names were compared by a column. */
export async function withoutComparableNames(
  { name }: Pick<Engine, 'name'>,
  { sql }: TestDatabase,
): Promise<void> {
  await sql(`DROP TRIGGER IF EXISTS alert_quota_low${name === 'SQLite' ? '' : ' ON users'}`)
  await sql('DROP TABLE low_quotas_told')
  await sql('DROP INDEX users_by_comparable_name')
  await sql('ALTER TABLE users DROP COLUMN comparable_name')
  await sql('ALTER TABLE usage_log DROP COLUMN note')
  await sql('ALTER TABLE stored_responses DROP COLUMN price_incomplete')
  await sql("DELETE FROM kysely_migration WHERE name >= '0035'")
}

/** Takes a schema back to the version before sums for series and details of calls. */
export async function withoutSeries({ name }: Engine, database: TestDatabase): Promise<void> {
  const { sql } = database
  for (const table of [...TABLES, ...LATER_TABLES[name]]) await sql(`DROP TABLE ${table}`)
  if (name === 'SQLite') await sql('DROP TABLE unsummed_calls')
  for (const column of ['failed', 'search_units']) await sql(`ALTER TABLE usage_days DROP COLUMN ${column}`)
  for (const column of ['attempts', 'particulars', 'search_units', 'price_incomplete'])
    await sql(`ALTER TABLE usage_log DROP COLUMN ${column}`)
  await withoutComparableNames({ name }, database)
  for (const table of ['stored_responses', 'kept_signatures']) await sql(`DROP INDEX ${table}_by_age`)
  await sql('ALTER TABLE stored_responses DROP COLUMN kept_bytes')
  await sql('ALTER TABLE kept_signatures DROP COLUMN kept_ms')
  await sql('ALTER TABLE stored_responses DROP COLUMN streamed')
  if (name === 'PostgreSQL') for (const statement of changesWithBudgets('public')) await sql(statement)
  await sql('ALTER TABLE tokens DROP COLUMN operator_terms')
  await sql("DELETE FROM kysely_migration WHERE name >= '0018'")
}
