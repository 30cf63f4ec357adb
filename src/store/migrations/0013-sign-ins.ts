import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/**
 * Creates identities at providers of OpenID Connect, and gives sessions their use and their sign-in, as
 * `sign-in-tables.ts` describes them.
 */
export function signIns({ integer, keyed }: ColumnTypes): Migration {
  return {
    async up(db) {
      await db.schema
        .createTable('identities')
        .addColumn('issuer', 'text', (column) => column.notNull())
        .addColumn('subject', 'text', (column) => column.notNull())
        .addColumn('user_id', integer, (column) => column.notNull().references('users.id'))
        .addColumn('created_time', integer, (column) => column.notNull())
        .addPrimaryKeyConstraint('identities_key', ['issuer', 'subject'])
        .modifyEnd(keyed)
        .execute()
      await db.schema.createIndex('identities_by_user').on('identities').columns(['user_id']).execute()
      await db.schema
        .createTable('used_states')
        .addColumn('hash', 'text', (column) => column.notNull().primaryKey())
        .addColumn('expires_time', integer, (column) => column.notNull())
        .modifyEnd(keyed)
        .execute()
      await db.schema.createIndex('used_states_by_end').on('used_states').columns(['expires_time']).execute()
      for (const name of ['address', 'user_agent'])
        await db.schema
          .alterTable('sessions')
          .addColumn(name, 'text', (column) => column.notNull().defaultTo(''))
          .execute()
      await db.schema
        .alterTable('sessions')
        .addColumn('last_used', integer, (column) => column.notNull().defaultTo(0))
        .execute()
      for (const name of ['access_token_hash', 'logout_cipher'])
        await db.schema.alterTable('sessions').addColumn(name, 'text').execute()
    },
  }
}
