import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/** Creates parts of large kept contents, as `schema.ts` describes them. */
export function responseParts({ integer }: ColumnTypes): Migration {
  return {
    async up(db) {
      await db.schema
        .createTable('response_parts')
        .addColumn('response_id', 'text', (column) => column.notNull())
        .addColumn('part', integer, (column) => column.notNull())
        .addColumn('created_ms', integer, (column) => column.notNull())
        .addColumn('content_cipher', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('response_parts_by_response', ['response_id', 'part'])
        .execute()
      // First parts stand for their responses in the search for those without a row.
      await db.schema
        .createIndex('response_parts_first')
        .on('response_parts')
        .columns(['created_ms', 'response_id'])
        .where(sql.ref('part'), '=', 0)
        .execute()
    },
  }
}
