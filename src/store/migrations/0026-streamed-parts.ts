import type { Migration } from 'kysely/migration'

/** Adds what was streamed of a background response, as `schema.ts` describes it. */
export function streamedParts(): Migration {
  return {
    async up(db) {
      await db.schema.alterTable('stored_responses').addColumn('streamed', 'text').execute()
    },
  }
}
