-- Books a node's report: settled calls, each counted once even if repeated, and sums of open holds. The
-- report is also the heartbeat that renews the leases. Returns the `AccountState` of every account in it.

create or replace function bank_seen(as_node text)
  returns void language plpgsql security definer set search_path from current as $$
begin
  insert into nodes (node, expires) values (as_node, now() + interval '60 seconds')
    on conflict (node) do update set expires = excluded.expires;
end
$$;

-- Returns the accounts that a call is charged to.
create or replace function bank_charged_to(call jsonb)
  returns text[] language plpgsql security definer set search_path from current as $$
begin
  return array['u:' || (call ->> 'user_id'), 't:' || (call ->> 'token_id')]
    || array(select jsonb_array_elements_text(coalesce(nullif(call ->> 'budgets', ''), '[]')::jsonb));
end
$$;

-- Returns the accounts that a report changes.
create or replace function bank_moved_by(as_node text, calls jsonb, accounts text[])
  returns text[] language plpgsql security definer set search_path from current as $$
begin
  return array(
    select unnest(accounts)
    union select unnest(bank_charged_to(c)) from jsonb_array_elements(calls) c
    union select account from lost_budgets where node = as_node
    union select 'u:' || user_id from lost_estimates where node = as_node
    union select 't:' || token_id from lost_estimates where node = as_node);
end
$$;

-- Charges the calls of a report. A row of the log shows that its call is charged, but is removed in time. A node that
-- was killed before it noted the answer reports again after any time, so the calls of its last report are remembered.
-- They stay while parts of that report still come.
create or replace function bank_charge_report(as_node text, calls jsonb)
  returns void language plpgsql security definer set search_path from current as $$
declare
  given text[] := array(select c ->> 'id' from jsonb_array_elements(calls) c);
  last text[] := array(select unnest(ids) from last_reports where node = as_node);
  again text[] := array(select unnest(given) intersect select unnest(last));
begin
  if cardinality(given) = 0 then return; end if;
  if cardinality(again) > 0 then
    calls := (select coalesce(jsonb_agg(c), '[]') from jsonb_array_elements(calls) c where c ->> 'id' <> all (again));
    given := array(select unnest(given) union select unnest(last));
  end if;
  perform bank_charge(as_node, calls);
  insert into last_reports (node, ids) values (as_node, given) on conflict (node) do update set ids = excluded.ids;
end
$$;

-- Books a report; the caller has locked the rows of the accounts that it changes.
create or replace function bank_book(as_node text, calls jsonb, accounts text[], helds bigint[], estimates bigint[], moved text[])
  returns setof jsonb language plpgsql security definer set search_path from current as $$
begin
  perform bank_withdraw_estimates(as_node, moved);
  perform bank_charge_report(as_node, calls);
  insert into leases as l (account, node, epoch, amount, held, estimate)
    select known.account, as_node, known.epoch, 0, known.held, known.estimate
    from (
      select told.*,
        case when told.account like 'u:%' then (select epoch from users where id = substr(told.account, 3)::bigint)
          when told.account like 't:%' then (select epoch from tokens where id = substr(told.account, 3)::bigint)
          else (select epoch from budget_periods b where b.account = told.account) end as epoch
      from unnest(accounts, helds, estimates) as told (account, held, estimate)
    ) known
    -- A database that was restored may lack the account of a hold.
    where known.epoch is not null
    on conflict (account, node) do update set held = excluded.held, estimate = excluded.estimate
      where l.held <> excluded.held or l.estimate <> excluded.estimate;
  delete from leases where node = as_node and account = any (moved) and amount = 0 and held = 0;
  perform bank_seen(as_node);
  return query select * from bank_statement(as_node, moved);
end
$$;

-- Leaves out what would change an account whose row another session has locked, and returns these accounts.
create or replace function bank_report(as_node text, calls jsonb, accounts text[], helds bigint[], estimates bigint[], known text[])
  returns setof jsonb language plpgsql security definer set search_path from current as $$
declare
  moved text[] := bank_moved_by(as_node, calls, accounts);
  locked text[] := bank_lock_free(moved || known, known);
begin
  if cardinality(locked) > 0 then
    calls := (select coalesce(jsonb_agg(c), '[]') from jsonb_array_elements(calls) c
      where not bank_charged_to(c) && locked);
    select coalesce(array_agg(account), '{}'), coalesce(array_agg(held), '{}'), coalesce(array_agg(estimate), '{}')
      into accounts, helds, estimates
      from unnest(accounts, helds, estimates) as told (account, held, estimate) where not account = any (locked);
    moved := array(select unnest(moved) except select unnest(locked));
  end if;
  return query select * from bank_book(as_node, calls, accounts, helds, estimates, moved);
  return query select jsonb_build_object('locked', a) from unnest(locked) a;
end
$$;

-- Report by which a node compares all of its accounts with the bank; also recovers leases of lost nodes.
create or replace function bank_compare(as_node text)
  returns setof jsonb language plpgsql security definer set search_path from current as $$
begin
  perform bank_look_after_lost(as_node);
  delete from loan_queue q where not exists (
    select from nodes n where n.node = q.node and n.asked > clock_timestamp() - interval '10 seconds');
  perform bank_seen(as_node);
  return query select * from bank_statement(as_node, array(select account from leases where node = as_node));
end
$$;
