import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/** The default of `options.keep_signatures`, for which earlier versions kept most signatures. */
const DAY_MS = 86_400_000

/**
 * Adds the sum of what is kept for each user, the time since which signatures are kept, and indexes by which
 * the oldest is found.
 */
export function keptSums({ integer, keyed }: ColumnTypes): Migration {
  return {
    async up(db) {
      await db.schema
        .alterTable('kept_signatures')
        .addColumn('kept_ms', integer, (column) => column.notNull().defaultTo(0))
        .execute()
      await sql`update kept_signatures set kept_ms = expires_ms - ${sql.lit(DAY_MS)}`.execute(db)
      await db.schema
        .createIndex('kept_signatures_by_age')
        .on('kept_signatures')
        .columns(['user_id', 'kept_ms'])
        .execute()
      await db.schema
        .createIndex('stored_responses_by_age')
        .on('stored_responses')
        .columns(['user_id', 'created_ms'])
        .where(sql<boolean>`content_cipher is not null`)
        .execute()
      await db.schema
        .createTable('kept_sums')
        .addColumn('user_id', integer, (column) => column.notNull().primaryKey())
        .addColumn('bytes', integer, (column) => column.notNull())
        .modifyEnd(keyed)
        .execute()
      await sql`
        insert into kept_sums (user_id, bytes)
        select user_id, cast(sum(bytes) as ${sql.raw(integer)}) from (
          select user_id, kept_bytes + 512 as bytes from stored_responses where content_cipher is not null
          union all
          select user_id, octet_length(content_cipher) + 512 as bytes from kept_signatures
        ) as kept group by user_id`.execute(db)
    },
  }
}
