import { POINT_TABLES } from '../src/store/usage-points.ts'
import type { Engine, TestDatabase } from './store-engines.ts'

const TABLES = [...POINT_TABLES.map(({ name }) => name), 'usage_refusals', 'price_sets']

/** Takes a schema back to the version before sums for series and details of calls. */
export async function withoutSeries({ name }: Engine, { sql }: TestDatabase): Promise<void> {
  for (const table of TABLES) await sql(`DROP TABLE ${table}`)
  if (name === 'SQLite') await sql('DROP TABLE unsummed_calls')
  await sql('ALTER TABLE usage_days DROP COLUMN failed')
  for (const column of ['attempts', 'particulars']) await sql(`ALTER TABLE usage_log DROP COLUMN ${column}`)
  await sql("DELETE FROM kysely_migration WHERE name >= '0018'")
}
