import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { remakeFunctions } from './bank/bank-function.ts'
import { CHARGE } from './bank/charge.ts'
import type { ColumnTypes } from './column-types.ts'

/** Adds to the usage log whether a call's price is incomplete. Rows that exist count as complete. */
export function incompletePrices({ integer, isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      await sql`alter table usage_log add column price_incomplete ${sql.raw(integer)} not null default 0`.execute(
        db,
      )
      if (isShared) await remakeFunctions(db, CHARGE)
    },
  }
}
