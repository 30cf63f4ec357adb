import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { quoted } from './bank/bank-function.ts'
import type { ColumnTypes } from './column-types.ts'

/** Creates the tables of alerts, as `alert-tables.ts` describes them, and the trigger for low quotas. */
export function alerts(types: ColumnTypes): Migration {
  return {
    async up(db) {
      await createOutbox(db, types)
      await createState(db, types)
      await (types.isShared ? watchQuotaOnPostgres(db) : watchQuotaOnSqlite(db))
    },
  }
}

async function createOutbox(db: Kysely<unknown>, { integer, keyed }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('alert_outbox')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('target', 'text', (column) => column.notNull())
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('data', 'text', (column) => column.notNull())
    .addColumn('created_ms', integer, (column) => column.notNull())
    .addColumn('due_ms', integer, (column) => column.notNull())
    .addColumn('first_ms', integer)
    .addColumn('attempts', integer, (column) => column.notNull())
    .addPrimaryKeyConstraint('alert_outbox_key', ['target', 'id'])
    .modifyEnd(keyed)
    .execute()
  await db.schema
    .createIndex('alert_outbox_by_due')
    .on('alert_outbox')
    .columns(['target', 'due_ms'])
    .execute()
}

async function createState(db: Kysely<unknown>, { integer, keyed }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('alert_thresholds')
    .addColumn('type', 'text', (column) => column.notNull().primaryKey())
    .addColumn('threshold', integer, (column) => column.notNull())
    .modifyEnd(keyed)
    .execute()
  await db.schema
    .createTable('alert_conditions')
    .addColumn('name', 'text', (column) => column.notNull().primaryKey())
    .addColumn('until_ms', integer, (column) => column.notNull())
    .modifyEnd(keyed)
    .execute()
  await db.schema
    .createTable('alert_sender')
    .addColumn('id', integer, (column) => column.notNull().primaryKey())
    .addColumn('node', 'text', (column) => column.notNull())
    .addColumn('until_ms', integer, (column) => column.notNull())
    .modifyEnd(keyed)
    .execute()
}

// Triggers see every way in which a balance falls, in the transaction in which it does.
async function watchQuotaOnSqlite(db: Kysely<unknown>): Promise<void> {
  await sql`
    create trigger alert_quota_low after update of quota on users
    when new.quota < old.quota and new.deleted_time is null
    begin
      insert into alert_outbox (id, target, type, data, created_ms, due_ms, attempts)
      select 'msg_' || lower(hex(randomblob(16))), '', t.type,
        json_object('user_id', new.id, 'username', new.username, 'quota', new.quota, 'threshold', t.threshold),
        cast(unixepoch('subsec') * 1000 as integer), 0, 0
      from alert_thresholds t
      where t.type = 'quota.low' and old.quota >= t.threshold and new.quota < t.threshold;
    end`.execute(db)
}

async function watchQuotaOnPostgres(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`select current_schema() as name`.execute(db)
  await sql
    .raw(
      `create or replace function alert_quota_low() returns trigger language plpgsql security definer
         set search_path = pg_catalog, ${quoted(rows[0]?.name ?? 'public')}, pg_temp as $alert$
begin
  insert into alert_outbox (id, target, type, data, created_ms, due_ms, attempts)
  select 'msg_' || replace(gen_random_uuid()::text, '-', ''), '', t.type,
    json_build_object('user_id', new.id, 'username', new.username, 'quota', new.quota, 'threshold', t.threshold)::text,
    (extract(epoch from clock_timestamp()) * 1000)::bigint, 0, 0
  from alert_thresholds t
  where t.type = 'quota.low' and old.quota >= t.threshold and new.quota < t.threshold;
  return null;
end
$alert$`,
    )
    .execute(db)
  await sql`revoke all on function alert_quota_low() from public`.execute(db)
  await sql`
    create trigger alert_quota_low after update of quota on users for each row
      when (new.quota < old.quota and new.deleted_time is null) execute function alert_quota_low()`.execute(
    db,
  )
}
