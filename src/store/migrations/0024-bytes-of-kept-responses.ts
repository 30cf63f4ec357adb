import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/**
 * Adds the size of each kept content, by which memory is taken before it is read. Contents of earlier
 * versions get the size that their encrypted form, base64, had before: a few bytes more than the texts.
 */
export function bytesOfKeptResponses({ integer }: ColumnTypes): Migration {
  return {
    async up(db) {
      await db.schema.alterTable('stored_responses').addColumn('kept_bytes', integer).execute()
      await sql`
        update stored_responses set kept_bytes = octet_length(content_cipher) * 3 / 4 + coalesce(
          (select cast(sum(octet_length(part.content_cipher) * 3 / 4) as ${sql.raw(integer)})
            from response_parts as part where part.response_id = stored_responses.id), 0)
        where content_cipher is not null`.execute(db)
    },
  }
}
