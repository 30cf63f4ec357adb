import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/** Days for which an entry cannot be deleted: one less than entries are kept, as clocks differ. */
const LOCKED_DAYS = 399
const LOCKED_MS = LOCKED_DAYS * 86_400_000
const REFUSAL = 'the audit log is append-only'

/** Creates the tables of the audit log (`audit-table.ts`); the database refuses to change its rows. */
export function auditLog({ id, asId, integer, counted, isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      const text = ['actor', 'via', 'address', 'action', 'object_kind', 'object_name', 'changes']
      let table = db.schema
        .createTable('audit_log')
        .addColumn('id', id, asId)
        .addColumn('at_ms', integer, (column) => column.notNull())
        .addColumn('actor_id', integer, (column) => column.notNull())
        .addColumn('object_id', integer)
      for (const name of text) table = table.addColumn(name, 'text', (column) => column.notNull())
      await table.modifyEnd(counted).execute()
      await db.schema.createIndex('audit_log_by_time').on('audit_log').columns(['at_ms']).execute()
      await db.schema
        .createIndex('audit_log_by_object')
        .on('audit_log')
        .columns(['object_kind', 'object_name', 'id'])
        .execute()
      await db.schema
        .createTable('declared_settings')
        .addColumn('kind', 'text', (column) => column.notNull())
        .addColumn('name', 'text', (column) => column.notNull())
        .addColumn('object_id', integer)
        .addColumn('fields', 'text', (column) => column.notNull())
        .addColumn('tags', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('declared_settings_key', ['kind', 'name'])
        .execute()
      await (isShared ? lockOnServer(db) : lockInFile(db))
    },
  }
}

async function lockInFile(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create trigger audit_log_no_update before update on audit_log
      begin select raise(abort, '${REFUSAL}'); end`,
    )
    .execute(db)
  await sql
    .raw(
      `create trigger audit_log_no_delete before delete on audit_log
      when old.at_ms > unixepoch() * 1000 - ${LOCKED_MS}
      begin select raise(abort, '${REFUSAL}'); end`,
    )
    .execute(db)
}

async function lockOnServer(db: Kysely<unknown>): Promise<void> {
  const statements = [
    `create or replace function audit_log_locked() returns trigger language plpgsql as
      $$ begin raise exception '${REFUSAL}'; end $$`,
    `create trigger audit_log_no_update before update on audit_log
      for each row execute function audit_log_locked()`,
    `create trigger audit_log_no_delete before delete on audit_log
      for each row when (old.at_ms > extract(epoch from clock_timestamp()) * 1000 - ${LOCKED_MS})
      execute function audit_log_locked()`,
    `create trigger audit_log_no_truncate before truncate on audit_log
      for each statement execute function audit_log_locked()`,
  ]
  for (const statement of statements) await sql.raw(statement).execute(db)
}
