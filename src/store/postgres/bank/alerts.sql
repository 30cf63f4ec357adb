-- Triggers add events of low quotas and used budgets to the outbox, in the transaction that causes them, so that
-- they cover every way in which a balance can fall.

-- Removes the mark of a user whose quota is no longer low, then adds an event for one whose quota falls and
-- is low.
create or replace function alert_quota_low()
  returns trigger language plpgsql security definer set search_path from current as $$
begin
  delete from low_quotas_told where user_id = new.id and exists (
    select 1 from alert_thresholds t where t.type = 'quota.low' and new.quota >= t.threshold);
  insert into alert_outbox (id, target, type, data, created_ms, due_ms, attempts)
    select 'msg_' || replace(gen_random_uuid()::text, '-', ''), '', t.type,
      json_build_object('user_id', new.id, 'username', new.username, 'quota', new.quota, 'threshold', t.threshold)::text,
      (extract(epoch from clock_timestamp()) * 1000)::bigint, 0, 0
    from alert_thresholds t
    where t.type = 'quota.low' and new.quota < t.threshold and new.quota < old.quota
      and not exists (select 1 from low_quotas_told where user_id = new.id);
  insert into low_quotas_told (user_id)
    select new.id from alert_thresholds t
    where t.type = 'quota.low' and new.quota < t.threshold and new.quota < old.quota
    on conflict (user_id) do nothing;
  return null;
end
$$;

drop trigger if exists alert_quota_low on users;
create trigger alert_quota_low after update of quota on users for each row
  when (new.quota <> old.quota and new.deleted_time is null and new.unlimited_quota = 0) execute function alert_quota_low();

-- A crossing is recorded once per period for all nodes together, so its event is added once as well.
create or replace function alert_budget_used()
  returns trigger language plpgsql security definer set search_path from current as $$
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
$$;

drop trigger if exists alert_budget_used on budget_crossings;
create trigger alert_budget_used after insert on budget_crossings for each row
  execute function alert_budget_used();
