-- Charges settled calls, each once. Values that a call does not state, such as those of an estimate for a lost
-- node, are empty or 0.

-- Adds two histograms of latencies: texts with `bucket:count ` for each bucket that has calls.
create or replace function bank_add_histograms(one text, other text)
  returns text language plpgsql immutable set search_path from current as $$
begin
  if one = '' or other = '' then return one || other; end if;
  return (
    select string_agg(bucket || ':' || calls || ' ', '' order by bucket)
    from (
      select split_part(entry, ':', 1)::integer as bucket, sum(split_part(entry, ':', 2)::bigint) as calls
      from unnest(string_to_array(rtrim(one || other), ' ')) entry group by 1
    ) entries);
end
$$;

create or replace function bank_charge(as_node text, calls jsonb)
  returns void language plpgsql security definer set search_path from current as $$
begin
  with given as (
    select distinct on (c.id) {{call_values}} from jsonb_to_recordset(calls) as c ({{call_columns}})
    -- Nothing can be charged to an unknown token; it must not hold up the other calls.
    join tokens k on k.id = c.token_id and k.user_id = c.user_id
    order by c.id
  ), logged as (
    insert into usage_log ({{row_columns}})
    select {{row_columns}} from given order by id
    on conflict (id) do nothing
    returning id
  ), fresh as (
    select given.* from given join logged using (id)
  ), slots as (
    select ended_ms / 1800000 as slot, user_id, token_id, model, channel, group_name, service_tier, region, {{sum_of_calls}}
    from fresh group by 1, 2, 3, 4, 5, 6, 7, 8
  ), entries as (
    select {{sum_key_of_kinds}}, histogram, bucket || ':' || count(*) || ' ' as entry
    from (select fresh.*, ended_ms / 1800000 as slot from fresh) slots,
      lateral (values {{call_buckets}}) as b (histogram, bucket),
      lateral (values {{route_keys}}) as c ({{sum_key}})
    where bucket is not null
    group by {{sum_key_of_kinds}}, histogram, bucket
  ), histograms as (
    select {{sum_key}}, {{histogram_texts}} from entries group by {{sum_key}}
  ), added as (
    select {{sum_key_of_kinds}}, {{sum_of_named_slots}}
    from slots, lateral (values {{sum_keys}}) as c ({{sum_key}})
    group by {{sum_key_of_kinds}}
  ), sums as (
    insert into usage_sums as s ({{sum_key}}, {{sum_columns}}, {{histogram_columns}})
    select {{sum_key}}, {{sum_columns}}, {{histogram_values}}
    from added left join histograms h using ({{sum_key}})
    order by {{sum_key}}
    on conflict ({{sum_key}}) do update set {{sum_updates}}, {{histogram_updates}}
  ), spent as (
    select s.account, s.id, s.quota, s.requests, s.ended_ms, least(s.quota, coalesce(l.amount, 0)) as lent
    from (
      select 'u:' || user_id as account, user_id as id, sum(quota)::bigint as quota, sum(requests)::bigint as requests,
        max(ended_ms) as ended_ms
      from fresh group by user_id
      union all
      select 't:' || token_id, token_id, sum(quota)::bigint, sum(requests)::bigint, max(ended_ms)
      from fresh group by token_id
      union all
      select b, null, sum(quota)::bigint, 0, 0
      from fresh, jsonb_array_elements_text(coalesce(nullif(budgets, ''), '[]')::jsonb) b group by b
    ) s
    left join leases l on l.account = s.account and l.node = as_node
  ), eased as (
    update leases l set amount = l.amount - spent.lent from spent
    where l.account = spent.account and l.node = as_node and spent.lent > 0
  ), of_tokens as (
    update tokens t set used_quota = t.used_quota + spent.quota, remain_quota = t.remain_quota - spent.quota,
      leased = t.leased - spent.lent, accessed_time = greatest(t.accessed_time, spent.ended_ms / 1000)
    from spent where spent.account like 't:%' and t.id = spent.id
  ), of_budgets as (
    update budget_periods b set used = b.used + spent.quota, leased = b.leased - spent.lent
    from spent where spent.account like 'b:%' and b.account = spent.account
  )
  update users u set used_quota = u.used_quota + spent.quota, quota = u.quota - spent.quota,
    leased = u.leased - spent.lent, request_count = u.request_count + spent.requests
  from spent where spent.account like 'u:%' and u.id = spent.id;
end
$$;
