import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/** Adds whether the price of a background call is incomplete. Those that exist count as complete. */
export function pricesOfBackgroundCalls({ integer }: ColumnTypes): Migration {
  return {
    async up(db) {
      await sql`alter table stored_responses add column price_incomplete ${sql.raw(integer)} not null default 0`.execute(
        db,
      )
    },
  }
}
