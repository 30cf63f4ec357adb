-- Functions used by the other files. Accounts are named `u:3`, `t:17`, or `b:month:2026-11-01:u:3` for a
-- budget in one period; callers lock their rows first.

-- Locks users first, and each kind in the order of ids, to avoid deadlocks.
create or replace function bank_lock(user_ids bigint[], token_ids bigint[])
  returns void language plpgsql security definer set search_path from current as $$
begin
  perform 1 from users where id = any (user_ids) order by id for no key update;
  perform 1 from tokens where id = any (token_ids) order by id for no key update;
end
$$;

create or replace function bank_lock_accounts(accounts text[])
  returns void language plpgsql security definer set search_path from current as $$
begin
  perform bank_lock(
    array(select substr(a, 3)::bigint from unnest(accounts) a where a like 'u:%'),
    array(select substr(a, 3)::bigint from unnest(accounts) a where a like 't:%'));
  perform bank_open_budgets(array(select a from unnest(accounts) a where a like 'b:%'));
end
$$;

-- Locks the accounts' rows, and returns the accounts whose rows another session has locked. Waits for
-- all of them together for 300 ms, but not for those in `known`.
create or replace function bank_lock_free(accounts text[], known text[])
  returns text[] language plpgsql security definer set search_path from current as $$
declare
  before text := current_setting('lock_timeout');
  named text[] := array(select distinct unnest(accounts));
  tried text[];
  users_tried bigint[];
  users_got bigint[];
  tokens_tried bigint[];
  tokens_got bigint[];
  budgets_got text[];
begin
  begin
    perform set_config('lock_timeout', '300ms', true);
    perform bank_lock_accounts(array(select unnest(named) except select unnest(known)));
    perform set_config('lock_timeout', before, true);
    tried := array(select unnest(named) intersect select unnest(known));
  exception when lock_not_available then
    -- The rollback has released the locks, and reset the timeout.
    tried := named;
  end;
  if cardinality(tried) = 0 then return tried; end if;
  users_tried := array(select substr(a, 3)::bigint from unnest(tried) a where a like 'u:%');
  tokens_tried := array(select substr(a, 3)::bigint from unnest(tried) a where a like 't:%');
  perform bank_open_budgets(array(select a from unnest(tried) a where a like 'b:%'
    and not exists (select from budget_periods where account = a)));
  users_got := array(select id from users where id = any (users_tried) order by id for no key update skip locked);
  tokens_got := array(select id from tokens where id = any (tokens_tried) order by id for no key update skip locked);
  budgets_got := array(
    select account from budget_periods where account = any (tried) order by account for no key update skip locked);
  return array(
    select 'u:' || id from users where id = any (users_tried) and not id = any (users_got)
    union all select 't:' || id from tokens where id = any (tokens_tried) and not id = any (tokens_got)
    union all select account from budget_periods where account = any (tried) and not account = any (budgets_got));
end
$$;

create or replace function bank_move_leased(of_account text, by_amount bigint)
  returns void language plpgsql security definer set search_path from current as $$
begin
  if by_amount = 0 then return; end if;
  if of_account like 'u:%' then
    update users set leased = leased + by_amount where id = substr(of_account, 3)::bigint;
  elsif of_account like 't:%' then
    update tokens set leased = leased + by_amount where id = substr(of_account, 3)::bigint;
  else
    update budget_periods set leased = leased + by_amount where account = of_account;
  end if;
end
$$;

create or replace function bank_give_back(of_account text, of_node text, back bigint)
  returns void language plpgsql security definer set search_path from current as $$
begin
  if back <= 0 then return; end if;
  update leases set amount = amount - back where account = of_account and node = of_node;
  perform bank_move_leased(of_account, -back);
end
$$;

-- Ends the leases of an account, except for what open holds need, and returns what stays lent. The nodes notice
-- by the epoch.
create or replace function bank_recall(of_account text, at_epoch bigint)
  returns bigint language plpgsql security definer set search_path from current as $$
begin
  delete from leases where account = of_account and held = 0;
  update leases set amount = least(amount, held), epoch = at_epoch where account = of_account;
  return coalesce((select sum(amount) from leases where account = of_account), 0);
end
$$;

-- Returns the part of expired nodes' leases that no hold needs. Skips nodes that are reporting right now.
create or replace function bank_reclaim(accounts text[])
  returns void language plpgsql security definer set search_path from current as $$
declare
  lent record;
begin
  for lent in
    select l.account, l.node, l.amount - l.held as back
    from leases l join nodes n on n.node = l.node
    where l.account = any (accounts) and n.expires < now() and l.amount > l.held
    order by l.account, l.node
    for no key update of n skip locked
  loop
    perform bank_give_back(lent.account, lent.node, lent.back);
  end loop;
end
$$;

-- Returns the `AccountState` of each account for a node.
create or replace function bank_statement(as_node text, accounts text[])
  returns setof jsonb language plpgsql security definer set search_path from current as $$
begin
  return query
    select jsonb_build_object('account', a.account, 'epoch', a.epoch, 'remain', a.remain, 'used', a.used,
      'free', a.remain - a.leased, 'amount', coalesce(l.amount, 0))
    from (
      select 'u:' || id as account, epoch, quota as remain, used_quota as used, leased from users
        where id = any (array(select substr(x, 3)::bigint from unnest(accounts) x where x like 'u:%'))
      union all
      select 't:' || id, epoch, remain_quota, used_quota, leased from tokens
        where id = any (array(select substr(x, 3)::bigint from unnest(accounts) x where x like 't:%'))
      union all
      select account, epoch, amount - used, used, leased from budget_periods
        where account = any (array(select x from unnest(accounts) x where x like 'b:%'))
    ) a
    left join leases l on l.account = a.account and l.node = as_node;
end
$$;
