-- Recovers leases of lost nodes. After 60 seconds without a heartbeat, the part that no hold needs is
-- returned; 15 minutes later the expected cost of the open holds is charged, in one usage row per token, and
-- the remaining part is returned. If the node comes back after that, its own report replaces the estimate.

-- Returns a UUID that sorts by time and is the same on every call.
create or replace function bank_lost_id(of_node text, token_id bigint, at_ms bigint)
  returns text language plpgsql security definer set search_path from current as $$
declare
  stamp text := lpad(to_hex(at_ms), 12, '0');
  noise text := md5(of_node || ' ' || token_id || ' ' || at_ms);
begin
  return concat_ws('-', substr(stamp, 1, 8), substr(stamp, 9, 4), '7' || substr(noise, 1, 3), 'b' || substr(noise, 4, 3),
    substr(noise, 7, 12));
end
$$;

create or replace function bank_charge_estimates(of_node text, at_ms bigint)
  returns void language plpgsql security definer set search_path from current as $$
declare
  lost record;
begin
  for lost in
    select l.estimate, t.id as token_id, t.user_id, bank_lost_id(of_node, t.id, at_ms) as usage_id
    from leases l join tokens t on l.account = 't:' || t.id
    where l.node = of_node and l.estimate > 0
    order by t.id
  loop
    perform bank_charge(of_node, jsonb_build_array(jsonb_build_object(
      'id', lost.usage_id, 'ended_ms', at_ms, 'user_id', lost.user_id, 'token_id', lost.token_id,
      'quota', lost.estimate, 'reason', 'lost-node', 'cause', 'gateway')));
    insert into lost_estimates (node, usage_id, token_id, user_id, quota)
      values (of_node, lost.usage_id, lost.token_id, lost.user_id, lost.estimate)
      on conflict do nothing;
  end loop;
  for lost in
    select account, estimate, least(estimate, amount) as lent from leases
    where node = of_node and account like 'b:%' and estimate > 0
    order by account
  loop
    update budget_periods set used = used + lost.estimate, leased = leased - lost.lent where account = lost.account;
    update leases set amount = amount - lost.lent where account = lost.account and node = of_node;
    insert into lost_budgets (node, account, quota) values (of_node, lost.account, lost.estimate)
      on conflict (node, account) do update set quota = lost_budgets.quota + excluded.quota;
  end loop;
end
$$;

create or replace function bank_look_after_lost(as_node text)
  returns void language plpgsql security definer set search_path from current as $$
declare
  lost record;
  lent record;
  moved text[];
  locked text[];
begin
  -- One at a time, and never one that another session is settling.
  select node, expires into lost from nodes n
    where n.node <> as_node and n.expires < now()
      and (n.expires < now() - interval '15 minutes'
        or exists (select from leases l where l.node = n.node and l.amount > l.held))
    order by n.expires limit 1 for update skip locked;
  if not found then return; end if;
  moved := array(
    select account from leases where node = lost.node
    -- A token is charged together with its user.
    union select 'u:' || t.user_id from leases l join tokens t on l.account = 't:' || t.id where l.node = lost.node);
  locked := bank_lock_free(moved, moved);
  perform bank_reclaim(array(select unnest(moved) except select unnest(locked)));
  -- A node is settled as a whole, so later if one of its accounts is locked.
  if cardinality(locked) > 0 or lost.expires >= now() - interval '15 minutes' then return; end if;
  perform bank_charge_estimates(lost.node, (extract(epoch from lost.expires) * 1000)::bigint);
  for lent in select account, amount from leases where node = lost.node order by account loop
    perform bank_give_back(lent.account, lost.node, lent.amount);
  end loop;
  delete from leases where node = lost.node;
  delete from nodes where node = lost.node;
end
$$;

-- Withdraws the estimates on accounts that a report changes.
create or replace function bank_withdraw_estimates(as_node text, moved text[])
  returns void language plpgsql security definer set search_path from current as $$
declare
  lost record;
  -- The time is the beginning of its id, because the row itself may have been removed from the log.
  at_ms bigint;
begin
  for lost in
    delete from lost_estimates where node = as_node and array['u:' || user_id, 't:' || token_id] <@ moved returning *
  loop
    delete from usage_log where id = lost.usage_id;
    at_ms := ('x' || substr(replace(lost.usage_id, '-', ''), 1, 12))::bit(48)::bigint;
    update usage_sums s set quota = s.quota - lost.quota, failed = s.failed - 1, unanswered = s.unanswered - 1,
        -- Only sums without keys have causes.
        failed_gateway = s.failed_gateway - case s.token_id when 0 then 1 else 0 end
      from (values (at_ms / 1800000, lost.user_id, lost.token_id, '', '', '', '', '')) as slots (slot, {{sum_dimensions}}),
        lateral (values {{sum_keys}}) as c ({{sum_key}})
      where ({{sum_key_of_rows}}) = ({{sum_key_of_kinds}});
    update tokens set used_quota = used_quota - lost.quota, remain_quota = remain_quota + lost.quota
      where id = lost.token_id;
    update users set used_quota = used_quota - lost.quota, quota = quota + lost.quota where id = lost.user_id;
  end loop;
  for lost in delete from lost_budgets where node = as_node and account = any (moved) returning * loop
    update budget_periods set used = used - lost.quota where account = lost.account;
  end loop;
end
$$;
