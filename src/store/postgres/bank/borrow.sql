-- Lends to a node. Each request names a token, by id or by the HMAC of its key, with the amounts of token and
-- user that it needs in addition to what the node has, and the maximum that it wants. A loan is an eighth of
-- the free amount, at least the need and at most the want, or nothing if a need cannot be met; an
-- unlimited token or user lends nothing, because it never refuses. Budgets that the calls are charged to are lent like
-- balances. Nothing is lent for new calls of a token or a user that may make none. Returns the current rows for each request, in order. A request with a ticket is that of a call, which gets a
-- place in the queue if it is refused; `left` is the ticket of a call that does not wait any more, null for all calls.

create or replace function bank_share(free bigint, need bigint, most bigint)
  returns bigint language plpgsql security definer set search_path from current as $$
begin
  return greatest(0, least(free, greatest(need, least(most, free / 8))));
end
$$;

create or replace function bank_lend(as_node text, of_account text, of_epoch bigint, lent bigint)
  returns void language plpgsql security definer set search_path from current as $$
begin
  if lent = 0 then return; end if;
  insert into leases as l (account, node, epoch, amount) values (of_account, as_node, of_epoch, lent)
    on conflict (account, node) do update set amount = l.amount + excluded.amount, epoch = excluded.epoch;
  perform bank_move_leased(of_account, lent);
end
$$;

create or replace function bank_acquire(as_node text, wanted jsonb)
  returns setof jsonb language plpgsql security definer set search_path from current as $$
declare
  ids bigint[];
  owners bigint[];
  one record;
  t tokens;
  u users;
  token_limited boolean;
  user_limited boolean;
  may boolean;
  token_gets bigint;
  user_gets bigint;
  named text[];
  budget record;
  short text[];
  needs bigint[];
  enough boolean;
begin
  perform bank_leave_queue(as_node, array(
    select (w ->> 'left')::bigint from jsonb_array_elements(wanted) w where w ? 'left'));
  if exists (select from jsonb_array_elements(wanted) w where w -> 'left' = 'null') then
    delete from loan_queue where node = as_node;
  end if;
  ids := array(
    select id from tokens where key_hash = any (array(select w ->> 'hash' from jsonb_array_elements(wanted) w))
    union
    select (w ->> 'token')::bigint from jsonb_array_elements(wanted) w where w ? 'token');
  owners := array(select distinct user_id from tokens where id = any (ids));
  named := array(select distinct b ->> 'account' from jsonb_array_elements(wanted) w,
    jsonb_array_elements(coalesce(w -> 'budgets', '[]')) b);
  perform bank_lock(owners, ids);
  perform bank_open_budgets(named);
  perform bank_reclaim(
    array(select 'u:' || id from unnest(owners) id union all select 't:' || id from unnest(ids) id) || named);
  -- The node is known from its first loan on, and counts as silent until it reports.
  insert into nodes (node, expires) values (as_node, now() + interval '60 seconds') on conflict (node) do nothing;
  if exists (select from jsonb_array_elements(wanted) w where w ? 'ticket') then
    update nodes set asked = clock_timestamp() where node = as_node;
  end if;
  for one in
    select w.* from jsonb_array_elements(wanted) with ordinality as e (value, nth),
      jsonb_to_record(e.value) as w (hash text, token bigint, token_need bigint, token_most bigint, user_need bigint,
        user_most bigint, budgets jsonb, under_way boolean, ticket bigint, place bigint, amount bigint, waits boolean)
    order by e.nth
  loop
    select * into t from tokens where key_hash = one.hash or id = one.token;
    if not found then
      return next jsonb_build_object('token', null);
      continue;
    end if;
    select * into u from users where id = t.user_id;
    token_limited := t.unlimited_quota = 0;
    user_limited := u.unlimited_quota = 0;
    for budget in
      select w.account, case
          when w.account = 'b:' || t.budget_period || ':' || split_part(w.account, ':', 3) || ':t:' || t.id then t.budget
          when w.account = 'b:' || u.budget_period || ':' || split_part(w.account, ':', 3) || ':u:' || u.id then u.budget
          else w.amount end as amount
      from jsonb_to_recordset(coalesce(one.budgets, '[]')) as w (account text, amount bigint)
      order by w.account
    loop
      perform bank_set_budget(budget.account, budget.amount);
    end loop;
    may := coalesce(one.under_way, false) or (
      t.status <> 2 and t.deleted_time is null and u.status <> 2 and u.deleted_time is null
      and (t.expired_time = -1 or t.expired_time > extract(epoch from now())));
    select coalesce(array_agg(w.account), '{}'), coalesce(array_agg(w.need), '{}') into short, needs from (
      select 'u:' || u.id as account, one.user_need as need where user_limited
      union all select 't:' || t.id, one.token_need where token_limited
      union all select b.account, b.need
        from jsonb_to_recordset(coalesce(one.budgets, '[]')) as b (account text, need bigint)) w
      where w.need > 0;
    enough := may and not exists (
      select from unnest(short, needs) as w (account, need) where bank_free(w.account) < w.need);
    may := enough and not (one.ticket is not null and bank_is_behind(one.place, one.waits, short, needs));
    if may then
      perform bank_leave_queue(as_node, array[one.ticket]);
      token_gets := case when token_limited then bank_share(t.remain_quota - t.leased, one.token_need,
        bank_useful('t:' || t.id, one.token_need, one.token_most)) else 0 end;
      user_gets := case when user_limited then bank_share(u.quota - u.leased, one.user_need,
        bank_useful('u:' || u.id, one.user_need, one.user_most)) else 0 end;
      perform bank_lend(as_node, 'u:' || u.id, u.epoch, user_gets);
      perform bank_lend(as_node, 't:' || t.id, t.epoch, token_gets);
      u.leased := u.leased + user_gets;
      t.leased := t.leased + token_gets;
      for budget in
        select b.account, b.epoch, bank_share(b.amount - b.used - b.leased, w.need,
            bank_useful(b.account, w.need, w.most)) as gets
        from jsonb_to_recordset(coalesce(one.budgets, '[]')) as w (account text, need bigint, most bigint)
        join budget_periods b on b.account = w.account
        order by b.account
      loop
        perform bank_lend(as_node, budget.account, budget.epoch, budget.gets);
      end loop;
    end if;
    return next jsonb_build_object('granted', may, 'token', to_jsonb(t), 'user', to_jsonb(u),
      'token_amount', coalesce((select amount from leases where account = 't:' || t.id and node = as_node), 0),
      'user_amount', coalesce((select amount from leases where account = 'u:' || u.id and node = as_node), 0),
      'budgets', (select coalesce(jsonb_agg(s), '[]') from bank_statement(as_node,
        array(select b ->> 'account' from jsonb_array_elements(coalesce(one.budgets, '[]')) b)) s),
      'place', case when not may and one.ticket is not null
        then bank_enqueue(as_node, one.ticket, one.place, one.amount, short) end,
      'returnable', not enough and bank_is_returnable(as_node, short, needs));
  end loop;
end
$$;

-- Returns the accounts of a request.
create or replace function bank_lent_by(wanted jsonb)
  returns text[] language plpgsql security definer set search_path from current as $$
begin
  return array(
    select unnest(array['t:' || id, 'u:' || user_id]) from tokens
    where key_hash = wanted ->> 'hash' or id = (wanted ->> 'token')::bigint
    union all select b ->> 'account' from jsonb_array_elements(coalesce(wanted -> 'budgets', '[]')) b);
end
$$;

-- Answers a request that needs no quota from the rows as they were last committed, without the locks of `barred`.
create or replace function bank_look_up(as_node text, wanted jsonb, barred text[])
  returns setof jsonb language plpgsql security definer set search_path from current as $$
begin
  return query select jsonb_build_object('locked', barred, 'granted', true, 'token', to_jsonb(t), 'user', to_jsonb(u),
      'token_amount', coalesce((select amount from leases where account = 't:' || t.id and node = as_node), 0),
      'user_amount', coalesce((select amount from leases where account = 'u:' || u.id and node = as_node), 0),
      'budgets', '[]'::jsonb, 'place', null, 'returnable', false)
    from tokens t join users u on u.id = t.user_id
    where t.key_hash = wanted ->> 'hash' or t.id = (wanted ->> 'token')::bigint;
end
$$;

-- The same, except that a request on an account whose row another session has locked is answered with
-- these accounts; one that only looks a token up, with the rows.
create or replace function bank_borrow(as_node text, wanted jsonb, known text[])
  returns setof jsonb language plpgsql security definer set search_path from current as $$
declare
  locked text[] := bank_lock_free(
    array(select unnest(bank_lent_by(w)) from jsonb_array_elements(wanted) w), known);
  one jsonb;
  barred text[];
begin
  if cardinality(locked) = 0 then
    return query select * from bank_acquire(as_node, wanted);
    return;
  end if;
  for one in select w from jsonb_array_elements(wanted) with ordinality as e (w, nth) order by nth loop
    barred := array(select unnest(bank_lent_by(one)) intersect select unnest(locked));
    if cardinality(barred) > 0 and one ? 'look_up' then return query select * from bank_look_up(as_node, one, barred);
    elsif cardinality(barred) > 0 then return next jsonb_build_object('locked', barred);
    else return query select * from bank_acquire(as_node, jsonb_build_array(one));
    end if;
  end loop;
end
$$;
