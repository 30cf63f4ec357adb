-- The queue of calls that wait for quota, by `docs/ledger.md: Waiting for other calls`. A call has a row for each account of which its node has too little. Nodes with calls that wait ask ten times a
-- second; the calls of one that does not are left out.

create or replace function bank_free(of_account text)
  returns bigint language plpgsql security definer set search_path from current as $$
begin
  if of_account like 'u:%' then
    return (select quota - leased from users where id = substr(of_account, 3)::bigint);
  elsif of_account like 't:%' then
    return (select remain_quota - leased from tokens where id = substr(of_account, 3)::bigint);
  end if;
  return (select amount - used - leased from budget_periods where account = of_account);
end
$$;

-- Place of the first call that lacks quota of an account; null if there is none.
create or replace function bank_first_short(of_account text)
  returns bigint language plpgsql security definer set search_path from current as $$
declare
  free bigint := bank_free(of_account);
begin
  return (
    select min(q.place) from loan_queue q join nodes n on n.node = q.node
    where q.account = of_account and q.amount > free and n.asked > clock_timestamp() - interval '1 second');
end
$$;

-- Whether a request for these amounts, each of which is free, must let calls go first: those that came first and can be
-- admitted now; and, if it waits itself, those that came first and lack quota of the same account.
create or replace function bank_is_behind(of_place bigint, itself_waits boolean, accounts text[], needs bigint[])
  returns boolean language plpgsql security definer set search_path from current as $$
declare
  one record;
  before record;
  free bigint;
  taken bigint;
begin
  for one in select w.account, w.need from unnest(accounts, needs) as w (account, need) loop
    free := bank_free(one.account);
    taken := one.need;
    if itself_waits and bank_first_short(one.account) < coalesce(of_place, 9223372036854775807) then return true; end if;
    for before in
      select q.node, q.ticket, q.place, q.amount from loan_queue q join nodes n on n.node = q.node
      where q.account = one.account and (of_place is null or q.place < of_place) and q.amount <= free
        and n.asked > clock_timestamp() - interval '1 second'
      order by q.place
    loop
      -- It may have to wait for other accounts, or behind others.
      if not exists (select from loan_queue o where o.node = before.node and o.ticket = before.ticket
          and bank_first_short(o.account) <= before.place)
      then taken := taken + before.amount; end if;
      if taken > free then return true; end if;
    end loop;
  end loop;
  return false;
end
$$;

-- Adds a call, or replaces what it needs; returns its place.
create or replace function bank_enqueue(as_node text, of_ticket bigint, at_place bigint, of_amount bigint, accounts text[])
  returns bigint language plpgsql security definer set search_path from current as $$
begin
  at_place := coalesce(at_place, nextval('loan_places'));
  delete from loan_queue where node = as_node and ticket = of_ticket and not account = any (accounts);
  insert into loan_queue as q (account, place, node, ticket, amount)
    select a, at_place, as_node, of_ticket, of_amount from unnest(accounts) a
    on conflict (account, place, node) do update set ticket = excluded.ticket, amount = excluded.amount
      where q.ticket <> excluded.ticket or q.amount <> excluded.amount;
  return at_place;
end
$$;

create or replace function bank_leave_queue(as_node text, tickets bigint[])
  returns void language plpgsql security definer set search_path from current as $$
begin
  delete from loan_queue where node = as_node and ticket = any (tickets);
end
$$;

-- What a loan may lend beyond the need: nothing while calls wait for the account.
create or replace function bank_useful(of_account text, need bigint, most bigint)
  returns bigint language plpgsql security definer set search_path from current as $$
begin
  return case when exists (select from loan_queue where account = of_account) then need else most end;
end
$$;

-- Whether the needs could be met if all other nodes returned what they do not hold.
create or replace function bank_is_returnable(as_node text, accounts text[], needs bigint[])
  returns boolean language plpgsql security definer set search_path from current as $$
begin
  return not exists (
    select from unnest(accounts, needs) as w (account, need)
    where bank_free(w.account) + (
      select coalesce(sum(greatest(0, l.amount - l.held)), 0) from leases l
      where l.account = w.account and l.node <> as_node) < w.need);
end
$$;
