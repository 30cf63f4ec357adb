-- The audit log refuses changes of its rows, and deletions for 399 days: one day less than entries are kept,
-- because clocks differ.

create or replace function audit_log_locked() returns trigger language plpgsql as $$
begin
  raise exception 'the audit log is append-only';
end
$$;

drop trigger if exists audit_log_no_update on audit_log;
create trigger audit_log_no_update before update on audit_log
  for each row execute function audit_log_locked();

drop trigger if exists audit_log_no_delete on audit_log;
create trigger audit_log_no_delete before delete on audit_log
  for each row when (old.at_ms > extract(epoch from clock_timestamp()) * 1000 - 34473600000)
  execute function audit_log_locked();

drop trigger if exists audit_log_no_truncate on audit_log;
create trigger audit_log_no_truncate before truncate on audit_log
  for each statement execute function audit_log_locked();
