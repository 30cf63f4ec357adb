import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { quoted } from './bank/bank-function.ts'
import type { ColumnTypes } from './column-types.ts'

/** Creates the tables of alerts (`alert-tables.ts`), and the triggers for low quotas and used budgets. */
export function alerts(types: ColumnTypes): Migration {
  return {
    async up(db) {
      await createOutbox(db, types)
      await createState(db, types)
      await (types.isShared ? watchQuotaOnPostgres(db) : watchQuotaOnSqlite(db))
      await (types.isShared ? watchBudgetsOnPostgres(db) : watchBudgetsOnSqlite(db))
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

// A crossing is noted once for each period, over all nodes, so that its event is added once as well.
async function watchBudgetsOnSqlite(db: Kysely<unknown>): Promise<void> {
  await sql`
    create trigger alert_budget_used after insert on budget_crossings
    begin
      insert into alert_outbox (id, target, type, data, created_ms, due_ms, attempts)
      select 'msg_' || lower(hex(randomblob(16))), '', t.type,
        json_object(
          'subject', case a.kind when 'u' then 'user' when 't' then 'token' else 'group' end,
          'id', case when a.kind <> 'g' then cast(a.key as integer) end,
          'name', case a.kind
            when 'u' then (select username from users where id = cast(a.key as integer))
            when 't' then (select name from tokens where id = cast(a.key as integer))
            else a.key end,
          'budget', new.amount,
          'budget_period', a.period,
          'budget_used', new.used,
          'budget_resets_at', unixepoch(a.date, case a.period when 'week' then '+7 days' else '+1 ' || a.period end)),
        cast(unixepoch('subsec') * 1000 as integer), 0, 0
      from alert_thresholds t, (
        select p.period,
          substr(new.account, length(p.period) + 4, 10) as date,
          substr(new.account, length(p.period) + 15, 1) as kind,
          substr(new.account, length(p.period) + 17) as key
        from (select substr(new.account, 3, instr(substr(new.account, 3), ':') - 1) as period) p
      ) a
      where t.type = 'budget.' || new.percent;
    end`.execute(db)
}

async function watchBudgetsOnPostgres(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`select current_schema() as name`.execute(db)
  await sql
    .raw(
      `create or replace function alert_budget_used() returns trigger language plpgsql security definer
         set search_path = pg_catalog, ${quoted(rows[0]?.name ?? 'public')}, pg_temp as $alert$
declare
  period text := split_part(new.account, ':', 2);
  starts timestamp := split_part(new.account, ':', 3)::timestamp;
  kind text := split_part(new.account, ':', 4);
  key text := substring(new.account from '^b:[^:]*:[^:]*:[utg]:(.*)$');
begin
  insert into alert_outbox (id, target, type, data, created_ms, due_ms, attempts)
  select 'msg_' || replace(gen_random_uuid()::text, '-', ''), '', t.type,
    json_build_object(
      'subject', case kind when 'u' then 'user' when 't' then 'token' else 'group' end,
      'id', case when kind <> 'g' then key::bigint end,
      'name', case kind
        when 'u' then (select username from users where id = key::bigint)
        when 't' then (select name from tokens where id = key::bigint)
        else key end,
      'budget', new.amount,
      'budget_period', period,
      'budget_used', new.used,
      'budget_resets_at', extract(epoch from (starts + ('1 ' || period)::interval) at time zone 'UTC')::bigint)::text,
    (extract(epoch from clock_timestamp()) * 1000)::bigint, 0, 0
  from alert_thresholds t
  where t.type = 'budget.' || new.percent;
  return null;
end
$alert$`,
    )
    .execute(db)
  await sql`revoke all on function alert_budget_used() from public`.execute(db)
  await sql`
    create trigger alert_budget_used after insert on budget_crossings for each row
      execute function alert_budget_used()`.execute(db)
}
