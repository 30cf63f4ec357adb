const NEW_MESSAGE = "'msg_' || lower(hex(randomblob(16)))"
const NOW_MS = "cast(unixepoch('subsec') * 1000 as integer)"

/** Days for which an audit entry cannot be deleted: one less than entries are kept, as clocks differ. */
const LOCKED_MS = 399 * 86_400_000

/** Statements that create the triggers of an embedded database; `postgres/bank` has those of a shared one. */
export const SQLITE_TRIGGERS: readonly string[] = [
  // Forgets a user whose quota is not low, then adds an event for one whose quota falls and is low.
  `create trigger alert_quota_low after update of quota on users
when new.quota <> old.quota and new.deleted_time is null
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
end`,
  // The transaction that uses a budget up to 80 % or 100 % notes it, once for each period.
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
  `create trigger audit_log_no_update before update on audit_log
begin select raise(abort, 'the audit log is append-only'); end`,
  `create trigger audit_log_no_delete before delete on audit_log
when old.at_ms > unixepoch() * 1000 - ${LOCKED_MS}
begin select raise(abort, 'the audit log is append-only'); end`,
]
