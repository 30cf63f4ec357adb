import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/** Creates stored responses and origins of encrypted reasoning, as `schema.ts` describes them. */
export function storedResponses({ integer, keyed }: ColumnTypes): Migration {
  return {
    async up(db) {
      await db.schema
        .createTable('stored_responses')
        .addColumn('id', 'text', (column) => column.notNull().primaryKey())
        .addColumn('user_id', integer, (column) => column.notNull())
        .addColumn('model', 'text', (column) => column.notNull())
        .addColumn('group_name', 'text', (column) => column.notNull())
        .addColumn('channel', 'text', (column) => column.notNull())
        .addColumn('key_tag', 'text', (column) => column.notNull())
        .addColumn('upstream_id', 'text', (column) => column.notNull())
        .addColumn('tokens', integer, (column) => column.notNull())
        .addColumn('previous_id', 'text')
        .addColumn('created_ms', integer, (column) => column.notNull())
        .addColumn('expires_ms', integer, (column) => column.notNull())
        .addColumn('content_cipher', 'text')
        .addColumn('call_id', 'text')
        .addColumn('rate', 'text')
        .addColumn('outcome', 'text')
        .modifyEnd(keyed)
        .execute()
      await db.schema
        .createIndex('stored_responses_by_end')
        .on('stored_responses')
        .columns(['expires_ms'])
        .execute()
      await db.schema
        .createIndex('stored_responses_by_call')
        .on('stored_responses')
        .columns(['call_id'])
        .where('call_id', 'is not', null)
        .execute()
      await db.schema
        .createTable('reasoning_origins')
        .addColumn('hash', 'text', (column) => column.notNull().primaryKey())
        .addColumn('channel', 'text', (column) => column.notNull())
        .addColumn('key_tag', 'text', (column) => column.notNull())
        .addColumn('expires_ms', integer, (column) => column.notNull())
        .modifyEnd(keyed)
        .execute()
      await db.schema
        .createIndex('reasoning_origins_by_end')
        .on('reasoning_origins')
        .columns(['expires_ms'])
        .execute()
    },
  }
}
