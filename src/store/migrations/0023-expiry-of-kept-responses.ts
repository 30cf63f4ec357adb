import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Leaves native responses out of the index over expiries: their ids sort by time, and the index was a fifth
 * of what storing one cost.
 */
export function expiryOfKeptResponses(): Migration {
  return {
    async up(db) {
      await db.schema.dropIndex('stored_responses_by_end').execute()
      await db.schema
        .createIndex('stored_responses_by_end')
        .on('stored_responses')
        .columns(['expires_ms'])
        .where(sql<boolean>`content_cipher is not null or call_id is not null`)
        .execute()
    },
  }
}
