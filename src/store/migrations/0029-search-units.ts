import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { remakeFunctions } from './bank/bank-function.ts'
import { CHARGE } from './bank/charge.ts'
import type { ColumnTypes } from './column-types.ts'

/** Adds the search units of rerank calls to the usage log and the daily sums. Rows that exist have none. */
export function searchUnits({ integer, isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      for (const table of ['usage_log', 'usage_days'])
        await sql`alter table ${sql.table(table)} add column search_units ${sql.raw(integer)} not null default 0`.execute(
          db,
        )
      if (isShared) await remakeFunctions(db, CHARGE)
    },
  }
}
