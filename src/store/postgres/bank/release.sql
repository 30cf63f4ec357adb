-- Returns leases of a node: all but the amounts to keep; or, with `accounts` null, everything, held or not,
-- which also removes the node. A node must keep the amounts of settled calls that it has not reported.

create or replace function bank_release(as_node text, accounts text[], keeps bigint[])
  returns setof jsonb language plpgsql security definer set search_path from current as $$
declare
  named text[] := coalesce(accounts, array(select account from leases where node = as_node));
  lent record;
begin
  perform bank_lock_accounts(named);
  for lent in
    select l.account, l.amount - coalesce(told.keep, 0) as back
    from leases l left join unnest(accounts, keeps) as told (account, keep) on told.account = l.account
    where l.node = as_node and l.account = any (named)
    order by l.account
  loop
    perform bank_give_back(lent.account, as_node, lent.back);
  end loop;
  delete from leases
    where node = as_node and account = any (named) and amount = 0 and (held = 0 or accounts is null);
  if accounts is null then
    delete from loan_queue where node = as_node;
    -- A node leaves when it has noted the answers to all of its reports.
    delete from last_reports where node = as_node;
  end if;
  if accounts is null and not exists (select from leases where node = as_node) then
    delete from nodes where node = as_node;
  end if;
  return query select * from bank_statement(as_node, named);
end
$$;

-- The user of an account; null for a group's budget.
create or replace function bank_user_of(of_account text)
  returns bigint language plpgsql security definer set search_path from current as $$
declare
  owner text := regexp_replace(of_account, '^b:[^:]*:[^:]*:', '');
begin
  if owner like 'u:%' then return substr(owner, 3)::bigint; end if;
  return (select user_id from tokens where owner like 't:%' and id = substr(owner, 3)::bigint);
end
$$;

-- The same, except for accounts whose rows another session has locked. A node that goes on keeps all that it has of
-- their users, because it could borrow nothing for them again.
create or replace function bank_return(as_node text, accounts text[], keeps bigint[], known text[])
  returns setof jsonb language plpgsql security definer set search_path from current as $$
declare
  named text[] := coalesce(accounts, array(select account from leases where node = as_node));
  locked text[] := bank_lock_free(named, known);
  leaves boolean := accounts is null;
begin
  if cardinality(locked) > 0 and not leaves then
    locked := locked || array(select a from unnest(named) a
      where bank_user_of(a) = any (array(select bank_user_of(l) from unnest(locked) l)));
  end if;
  if cardinality(locked) > 0 then
    named := array(select unnest(named) except select unnest(locked));
    if leaves then
      update leases set held = 0, estimate = 0 where node = as_node and account = any (named);
    end if;
    keeps := array(select coalesce(told.keep, 0) from unnest(named) with ordinality as free (account, nth)
      left join unnest(accounts, keeps) as told (account, keep) on told.account = free.account order by free.nth);
    accounts := named;
  end if;
  return query select * from bank_release(as_node, accounts, keeps);
end
$$;
