import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { remakeFunctions } from './bank/bank-function.ts'
import { CHARGE } from './bank/charge.ts'
import type { ColumnTypes } from './column-types.ts'

/**
 * Adds attempts and further facts about calls to the usage log, and creates the table of
 * prices by version, as `schema.ts` describes them. Rows that exist have none of these.
 */
export function callDetails({ keyed, isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      for (const name of ['attempts', 'particulars'])
        await sql`alter table usage_log add column ${sql.ref(name)} text`.execute(db)
      await db.schema
        .createTable('price_sets')
        .addColumn('version', 'text', (column) => column.notNull())
        .addColumn('model', 'text', (column) => column.notNull())
        .addColumn('group_name', 'text', (column) => column.notNull())
        .addColumn('content', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('price_sets_key', ['version', 'model', 'group_name'])
        .modifyEnd(keyed)
        .execute()
      if (isShared) await remakeFunctions(db, CHARGE)
    },
  }
}
