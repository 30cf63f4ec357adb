import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/**
 * Leaves native responses out of the index over expiries, which was a fifth of what storing one cost: their
 * ids sort by time. On shared databases they sorted by a language until now, in which `aa` may follow `z`.
 */
export function expiryOfKeptResponses({ isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      await db.schema.dropIndex('stored_responses_by_end').execute()
      if (isShared) await sql`alter table stored_responses alter column id type text collate "C"`.execute(db)
      await db.schema
        .createIndex('stored_responses_by_end')
        .on('stored_responses')
        .columns(['expires_ms'])
        .where(sql<boolean>`content_cipher is not null or call_id is not null`)
        .execute()
    },
  }
}
