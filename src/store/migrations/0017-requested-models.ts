import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { remakeFunctions } from './bank/bank-function.ts'
import { CHARGE } from './bank/charge.ts'
import type { ColumnTypes } from './column-types.ts'

/**
 * Adds the model that the client requested to the usage log and to holds: a fallback may have answered. Rows
 * that exist leave it empty.
 */
export function requestedModels({ isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      for (const table of ['usage_log', 'holds'])
        await sql`alter table ${sql.table(table)} add column requested_model text not null default ''`.execute(
          db,
        )
      if (isShared) await remakeFunctions(db, CHARGE)
    },
  }
}
