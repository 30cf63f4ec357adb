import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/** Creates kept signatures, as `schema.ts` describes them. */
export function keptSignatures({ integer }: ColumnTypes): Migration {
  return {
    async up(db) {
      await db.schema
        .createTable('kept_signatures')
        .addColumn('user_id', integer, (column) => column.notNull())
        .addColumn('hash', 'text', (column) => column.notNull())
        .addColumn('content_cipher', 'text', (column) => column.notNull())
        .addColumn('expires_ms', integer, (column) => column.notNull())
        .addPrimaryKeyConstraint('kept_signatures_by_user', ['user_id', 'hash'])
        .execute()
      await db.schema
        .createIndex('kept_signatures_by_end')
        .on('kept_signatures')
        .columns(['expires_ms'])
        .execute()
    },
  }
}
