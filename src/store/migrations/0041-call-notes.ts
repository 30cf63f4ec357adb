import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { remakeFunctions } from './bank/bank-function.ts'
import { CHARGE } from './bank/charge.ts'
import type { ColumnTypes } from './column-types.ts'

/** Adds notes on responses to the usage log. Rows that exist have none. */
export function callNotes({ isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      await sql`alter table usage_log add column note text not null default ''`.execute(db)
      if (isShared) await remakeFunctions(db, CHARGE)
    },
  }
}
