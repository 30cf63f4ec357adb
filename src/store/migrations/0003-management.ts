import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/** Creates sessions, stored channels and settings, and remarks on users, as `schema.ts` describes them. */
export function management(types: ColumnTypes): Migration {
  return {
    async up(db) {
      await db.schema
        .alterTable('users')
        .addColumn('remark', 'text', (column) => column.notNull().defaultTo(''))
        .execute()
      await db.schema.alterTable('users').addColumn('first_username', 'text').execute()
      await createSessions(db, types)
      await createChannels(db, types)
      await createStoredSettings(db, types)
    },
  }
}

async function createSessions(db: Kysely<unknown>, { integer, keyed }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('sessions')
    .addColumn('id_hash', 'text', (column) => column.notNull().primaryKey())
    .addColumn('user_id', integer, (column) => column.notNull().references('users.id'))
    .addColumn('created_time', integer, (column) => column.notNull())
    .addColumn('expires_time', integer, (column) => column.notNull())
    .modifyEnd(keyed)
    .execute()
  await db.schema.createIndex('sessions_by_user').on('sessions').columns(['user_id']).execute()
  await db.schema.createIndex('sessions_by_end').on('sessions').columns(['expires_time']).execute()
}

async function createChannels(
  db: Kysely<unknown>,
  { id, asId, integer, counted }: ColumnTypes,
): Promise<void> {
  await db.schema
    .createTable('channels')
    .addColumn('id', id, asId)
    .addColumn('name', 'text', (column) => column.notNull().unique())
    .addColumn('declared', 'text', (column) => column.notNull())
    .addColumn('keys_cipher', 'text', (column) => column.notNull())
    .addColumn('status', integer, (column) => column.notNull())
    .addColumn('family', 'text', (column) => column.notNull())
    .addColumn('created_time', integer, (column) => column.notNull())
    .addColumn('test_time', integer, (column) => column.notNull())
    .addColumn('response_ms', integer, (column) => column.notNull())
    .modifyEnd(counted)
    .execute()
}

async function createStoredSettings(db: Kysely<unknown>, { keyed }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('stored_settings')
    .addColumn('section', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('stored_settings_key', ['section', 'name'])
    .modifyEnd(keyed)
    .execute()
}
