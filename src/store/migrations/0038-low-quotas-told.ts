import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { quoted } from './bank/bank-function.ts'
import type { ColumnTypes } from './column-types.ts'

/** Notes the users of whose low quota there was an alert: one who was never above is told of as well. */
export function lowQuotasTold({ integer, keyed, isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      await db.schema
        .createTable('low_quotas_told')
        .addColumn('user_id', integer, (column) => column.notNull().primaryKey())
        .modifyEnd(keyed)
        .execute()
      // Most users who are below fell there, and were told of.
      await sql`
        insert into low_quotas_told (user_id)
        select u.id from users u, alert_thresholds t where t.type = 'quota.low' and u.quota < t.threshold`.execute(
        db,
      )
      await (isShared ? watchOnPostgres(db) : watchOnSqlite(db))
    },
  }
}

/** Forgets a user whose quota is not low, then tells of one whose quota falls and is low. */
function statements(data: string, id: string, nowMs: string): string {
  return `
  delete from low_quotas_told where user_id = new.id and exists (
    select 1 from alert_thresholds t where t.type = 'quota.low' and new.quota >= t.threshold);
  insert into alert_outbox (id, target, type, data, created_ms, due_ms, attempts)
    select 'msg_' || ${id}, '', t.type, ${data}, ${nowMs}, 0, 0
    from alert_thresholds t
    where t.type = 'quota.low' and new.quota < t.threshold and new.quota < old.quota
      and not exists (select 1 from low_quotas_told where user_id = new.id);
  insert into low_quotas_told (user_id)
    select new.id from alert_thresholds t
    where t.type = 'quota.low' and new.quota < t.threshold and new.quota < old.quota
    on conflict (user_id) do nothing;`
}

const FIELDS = `'user_id', new.id, 'username', new.username, 'quota', new.quota, 'threshold', t.threshold`

async function watchOnSqlite(db: Kysely<unknown>): Promise<void> {
  const body = statements(
    `json_object(${FIELDS})`,
    'lower(hex(randomblob(16)))',
    "cast(unixepoch('subsec') * 1000 as integer)",
  )
  await sql`drop trigger if exists alert_quota_low`.execute(db)
  await sql
    .raw(
      `create trigger alert_quota_low after update of quota on users
       when new.quota <> old.quota and new.deleted_time is null
       begin ${body} end`,
    )
    .execute(db)
}

async function watchOnPostgres(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`select current_schema() as name`.execute(db)
  const body = statements(
    `json_build_object(${FIELDS})::text`,
    "replace(gen_random_uuid()::text, '-', '')",
    '(extract(epoch from clock_timestamp()) * 1000)::bigint',
  )
  await sql
    .raw(
      `create or replace function alert_quota_low() returns trigger language plpgsql security definer
         set search_path = pg_catalog, ${quoted(rows[0]?.name ?? 'public')}, pg_temp as $alert$
begin ${body}
  return null;
end
$alert$`,
    )
    .execute(db)
  await sql`revoke all on function alert_quota_low() from public`.execute(db)
  await sql`drop trigger if exists alert_quota_low on users`.execute(db)
  await sql`
    create trigger alert_quota_low after update of quota on users for each row
      when (new.quota <> old.quota and new.deleted_time is null) execute function alert_quota_low()`.execute(
    db,
  )
}
