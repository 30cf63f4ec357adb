import { type Kysely, sql } from 'kysely'
import { CHANNEL } from '../../../domain/records/channel.ts'
import { REFUSAL, REFUSAL_KEY_COLUMNS } from '../../../domain/records/refusal.ts'
import { TOKEN } from '../../../domain/records/token.ts'
import { HOLD, USAGE } from '../../../domain/records/usage.ts'
import { USER } from '../../../domain/records/user.ts'
import { HISTOGRAMS, SUM_COLUMNS, USAGE_SUMS_KEY, SUM_KINDS } from '../../sum-kinds.ts'
import { TABLES } from '../../tables.ts'
import { type ColumnTypes, recordColumns, createTables, type Table } from './table.ts'

/** Creates the schema of version 0.1.0: the tables of records, and the tables in `TABLES`. */
export async function createSchema(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const others = Object.entries(TABLES).map(([name, table]) => ({ name, ...table }))
  await createTables(db, [...RECORDS, ...others], types)
  await (types.isShared ? createPartitioned(db, types) : createOwn(db, types))
  const statements = types.isShared ? BANK_TABLES : SQLITE_TRIGGERS
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const USAGE_LOG: Table = {
  name: 'usage_log',
  columns: { ...recordColumns(USAGE), id: 'sorted primary key' },
  indexes: {
    usage_log_by_user: '(user_id, ended_ms)',
    usage_log_by_session: "(session, ended_ms) where session <> ''",
  },
}

export const USAGE_SUMS: Table = {
  name: 'usage_sums',
  columns: {
    kind: 'small',
    start: 'integer',
    user_id: 'integer',
    token_id: 'integer',
    model: 'text',
    channel: 'text',
    group_name: 'text',
    service_tier: 'text',
    region: 'text',
    ...Object.fromEntries(SUM_COLUMNS.map((name) => [name, 'integer default 0'])),
    ...Object.fromEntries(HISTOGRAMS.map((name) => [name, "text default ''"])),
  },
  // The time is the first column of each key, so that a commit of many calls changes few pages.
  key: USAGE_SUMS_KEY,
}

async function createOwn(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const { columns } = USAGE_LOG
  const references = {
    user_id: 'integer references users (id)',
    token_id: 'integer references tokens (id)',
  }
  const log = { ...USAGE_LOG, columns: { ...columns, ...references } }
  await createTables(db, [log, USAGE_SUMS, ...UNSUMMED_TABLES], types)
}

/**
 * Tables of a SQLite database that say which calls are not in the sums of usage. A row of `unsummed_calls` has
 * the ids of the calls of one commit, as two JSON lists: those that were answered, and the others. While a set
 * of these calls is in the sums partly, `sums_watermark` has its last row, and how much of it is in the sums.
 */
export const UNSUMMED_TABLES: readonly Table[] = [
  { name: 'unsummed_calls', columns: { answered: 'text', unanswered: 'text' }, rows: 'counted' },
  { name: 'sums_watermark', columns: { id: 'integer primary key', place: 'integer', done: 'integer' } },
]

/**
 * Partitions the usage log by ranges of ids, which sort by time, and the sums by kind. The log has no foreign
 * keys to users and tokens, because dropping a partition would then lock these tables. Rows of users and
 * tokens are never removed.
 */
async function createPartitioned(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await createTables(db, [{ ...USAGE_LOG, partitionedBy: 'range (id)' }], types)
  await sql`create table usage_log_default partition of usage_log default`.execute(db)
  await createTables(db, [{ ...USAGE_SUMS, partitionedBy: 'list (kind)' }], types)
  // Each report of a node updates many sums. With free space in a page, an updated row stays in its page, and
  // no index has to change.
  for (const { kind, name } of SUM_KINDS)
    await sql`
      create table ${sql.table(`usage_sums_${name}`)} partition of usage_sums for values in (${sql.lit(kind)})
      with (fillfactor = 80)`.execute(db)
}

const RECORDS: readonly Table[] = [
  {
    name: USER.table,
    columns: recordColumns(USER),
    // The index is not unique; serializable transactions prevent equal usernames.
    indexes: { users_by_comparable_name: '(comparable_name)' },
  },
  { name: TOKEN.table, columns: recordColumns(TOKEN), indexes: { tokens_by_user: '(user_id, id)' } },
  { name: HOLD.table, columns: recordColumns(HOLD) },
  { name: CHANNEL.table, columns: recordColumns(CHANNEL) },
  { name: REFUSAL.table, columns: recordColumns(REFUSAL), key: REFUSAL_KEY_COLUMNS },
]

/**
 * Statements that create the tables of the bank in a shared database: for each account the amount lent
 * (`leased`) and how often leases were ended (`epoch`), the leases themselves, and the expiry of each node.
 * `docs/ledger.md: Many nodes`.
 */
const BANK_TABLES = [
  ...['users', 'tokens', 'budget_periods'].map(
    (table) => `alter table ${table}
     add column leased bigint not null default 0 constraint ${table}_leased check (leased >= 0),
     add column epoch bigint not null default 0`,
  ),
  // Identifies the bank. A node stores this in its local file, so that it never reports to another bank.
  'alter table store_identity add column bank text not null default gen_random_uuid()::text',
  // `asked`: when the node last requested quota for waiting calls.
  'create table nodes (node text primary key, expires timestamptz not null, asked timestamptz)',
  `create table leases (
     account text not null,
     node text not null,
     epoch bigint not null,
     amount bigint not null constraint leases_amount check (amount >= 0),
     held bigint not null default 0 constraint leases_held check (held >= 0),
     estimate bigint not null default 0 constraint leases_estimate check (estimate >= 0),
     primary key (account, node)
   )`,
  'create index leases_by_node on leases (node)',
  // Calls that wait for quota, in order of arrival, with each account on which they need an amount. The table
  // is unlogged, because nodes repeat their requests after a crash.
  'create sequence loan_places',
  `create unlogged table loan_queue (
     account text not null,
     place bigint not null,
     node text not null,
     ticket bigint not null,
     amount bigint not null,
     primary key (account, place, node)
   )`,
  'create index loan_queue_by_ticket on loan_queue (node, ticket)',
  // Estimated charges of nodes that stopped responding. They are reversed if the node comes back.
  `create table lost_estimates (
     node text not null,
     usage_id text not null,
     token_id bigint not null,
     user_id bigint not null,
     quota bigint not null,
     primary key (node, usage_id)
   )`,
  `create table lost_budgets (
     node text not null,
     account text not null,
     quota bigint not null,
     primary key (node, account)
   )`,
  // Key with which the database signs its messages: the two padded blocks that HMAC computes from it.
  `create table message_key (
     id integer primary key check (id = 1),
     inner_block bytea not null,
     outer_block bytea not null
   )`,
  // Counts of concurrent calls. The tables are unlogged, so they are empty after a crash of the server.
  `create unlogged table call_generation (
     id integer primary key check (id = 1),
     born_at timestamptz not null
   )`,
  `create unlogged table call_nodes (
     node text primary key,
     seen_at timestamptz not null
   )`,
  `create unlogged table call_places (
     subject text not null,
     node text not null,
     held bigint not null,
     primary key (subject, node)
   )`,
]

const NEW_MESSAGE = "'msg_' || lower(hex(randomblob(16)))"
const NOW_MS = "cast(unixepoch('subsec') * 1000 as integer)"

/**
 * Milliseconds for which an audit entry cannot be deleted: one day less than entries are kept, because clocks
 * differ.
 */
const LOCKED_MS = 399 * 86_400_000

/**
 * If a user's quota is no longer low, removes the record that an alert was added. If it has become low, adds an alert.
 */
export const ALERT_QUOTA_LOW = `create trigger alert_quota_low after update of quota on users
when new.quota <> old.quota and new.deleted_time is null and new.unlimited_quota = 0
begin
  delete from low_quotas_told where user_id = new.id and exists (
    select 1 from alert_thresholds t where t.type = 'quota.low' and new.quota >= t.threshold);
  insert into alert_outbox (id, target, type, data, created_ms, due_ms, attempts)
    select ${NEW_MESSAGE}, '', t.type,
      json_object('user_id', new.id, 'username', new.username, 'quota', new.quota, 'threshold', t.threshold),
      ${NOW_MS}, 0, 0
    from alert_thresholds t
    where t.type = 'quota.low' and new.quota < t.threshold and new.quota < old.quota
      and not exists (select 1 from low_quotas_told where user_id = new.id);
  insert into low_quotas_told (user_id)
    select new.id from alert_thresholds t
    where t.type = 'quota.low' and new.quota < t.threshold and new.quota < old.quota
    on conflict (user_id) do nothing;
end`

/** Refuses changes of the audit log. */
export const AUDIT_LOG_NO_UPDATE = `create trigger audit_log_no_update before update on audit_log
begin select raise(abort, 'the audit log is append-only'); end`

/**
 * Statements that create the triggers of a SQLite database. The triggers of a shared database are in
 * `postgres/bank`.
 */
const SQLITE_TRIGGERS: readonly string[] = [
  ALERT_QUOTA_LOW,
  // Records when a transaction brings the use of a budget to 80 % or 100 %, once per period and percentage.
  ...['insert', 'update of used, amount'].map(
    (event) => `create trigger budget_crossed_by_${event.slice(0, 6)} after ${event} on budget_periods
when new.amount > 0 and new.used * 5 >= new.amount * 4
begin
  insert into budget_crossings (account, percent, amount, used) values (new.account, 80, new.amount, new.used)
    on conflict (account, percent) do nothing;
  insert into budget_crossings (account, percent, amount, used)
    select new.account, 100, new.amount, new.used where new.used >= new.amount
    on conflict (account, percent) do nothing;
end`,
  ),
  `create trigger alert_budget_used after insert on budget_crossings
begin
  insert into alert_outbox (id, target, type, data, created_ms, due_ms, attempts)
  select ${NEW_MESSAGE}, '', t.type,
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
    ${NOW_MS}, 0, 0
  from alert_thresholds t, (
    select p.period,
      substr(new.account, length(p.period) + 4, 10) as date,
      substr(new.account, length(p.period) + 15, 1) as kind,
      substr(new.account, length(p.period) + 17) as key
    from (select substr(new.account, 3, instr(substr(new.account, 3), ':') - 1) as period) p
  ) a
  where t.type = 'budget.' || new.percent;
end`,
  AUDIT_LOG_NO_UPDATE,
  `create trigger audit_log_no_delete before delete on audit_log
when old.at_ms > unixepoch() * 1000 - ${LOCKED_MS}
begin select raise(abort, 'the audit log is append-only'); end`,
]
