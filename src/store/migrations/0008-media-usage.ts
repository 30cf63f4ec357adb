import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { remakeFunctions } from './bank/bank-function.ts'
import { CHARGE } from './bank/charge.ts'
import type { ColumnTypes } from './column-types.ts'

const COUNTS = [
  'audio_input_tokens',
  'image_input_tokens',
  'audio_output_tokens',
  'image_output_tokens',
  'seconds',
  'characters',
  'images',
]

/**
 * Adds the usage of other modalities to the usage log and the daily sums, and the kind of call to the log and
 * to holds. Rows that exist used none of it, and their kind stays empty.
 */
export function mediaUsage({ integer, isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      for (const table of ['usage_log', 'usage_days']) {
        for (const name of COUNTS) await addColumn(db, table, name, integer, '0')
      }
      for (const table of ['usage_log', 'holds']) await addColumn(db, table, 'kind', 'text', "''")
      if (isShared) await remakeFunctions(db, CHARGE)
    },
  }
}

async function addColumn(
  db: Kysely<unknown>,
  table: string,
  name: string,
  type: string,
  initial: string,
): Promise<void> {
  await sql`alter table ${sql.table(table)} add column ${sql.ref(name)} ${sql.raw(type)} not null default ${sql.raw(initial)}`.execute(
    db,
  )
}
