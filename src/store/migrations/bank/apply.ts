import type { BankFunction } from './bank-function.ts'

/**
 * Books a node's report: settled calls, each counted once even if repeated, and sums of open holds. The
 * report is also the heartbeat that renews the leases. Returns the `AccountState` of every account in it. An
 * empty report recovers leases of lost nodes, and returns the state of all accounts that the node borrows
 * from.
 */
export const APPLY: readonly BankFunction[] = [
  {
    name: 'bank_charge(as_node text, calls jsonb)',
    returns: 'void',
    body: `
begin
  with given as (
    select distinct on (c.id) c.* from jsonb_to_recordset(calls) as c (
      id text, ended_ms bigint, user_id bigint, token_id bigint, model text, upstream_model text, channel text,
      group_name text, input_tokens bigint, cache_read_tokens bigint, cache_write_5m_tokens bigint,
      cache_write_1h_tokens bigint, output_tokens bigint, reasoning_tokens bigint, web_searches bigint, quota bigint,
      price_version text, duration_ms bigint, first_byte_ms bigint, stream bigint, reason text, requests bigint)
    -- Of a token that nobody knows here nothing can be charged; it must not keep back what can.
    join tokens k on k.id = c.token_id and k.user_id = c.user_id
    order by c.id
  ), logged as (
    insert into usage_log (id, ended_ms, user_id, token_id, model, upstream_model, channel, group_name, input_tokens,
      cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, web_searches,
      quota, price_version, duration_ms, first_byte_ms, stream, reason)
    select id, ended_ms, user_id, token_id, model, upstream_model, channel, group_name, input_tokens,
      cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, web_searches,
      quota, price_version, duration_ms, first_byte_ms, stream, reason
    from given order by id
    on conflict (id) do nothing
    returning id
  ), fresh as (
    select given.* from given join logged using (id)
  ), days as (
    insert into usage_days as d (day, user_id, token_id, model, channel, group_name, requests, input_tokens,
      cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, web_searches,
      quota)
    select ended_ms / 86400000, user_id, token_id, model, channel, group_name, sum(requests), sum(input_tokens),
      sum(cache_read_tokens), sum(cache_write_5m_tokens), sum(cache_write_1h_tokens), sum(output_tokens),
      sum(reasoning_tokens), sum(web_searches), sum(quota)
    from fresh group by 1, 2, 3, 4, 5, 6 order by 1, 2, 3, 4, 5, 6
    on conflict (day, user_id, token_id, model, channel, group_name) do update set
      requests = d.requests + excluded.requests,
      input_tokens = d.input_tokens + excluded.input_tokens,
      cache_read_tokens = d.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_5m_tokens = d.cache_write_5m_tokens + excluded.cache_write_5m_tokens,
      cache_write_1h_tokens = d.cache_write_1h_tokens + excluded.cache_write_1h_tokens,
      output_tokens = d.output_tokens + excluded.output_tokens,
      reasoning_tokens = d.reasoning_tokens + excluded.reasoning_tokens,
      web_searches = d.web_searches + excluded.web_searches,
      quota = d.quota + excluded.quota
  ), spent as (
    select s.account, s.id, s.quota, s.requests, s.ended_ms, least(s.quota, coalesce(l.amount, 0)) as lent
    from (
      select 'u:' || user_id as account, user_id as id, sum(quota)::bigint as quota, sum(requests)::bigint as requests,
        max(ended_ms) as ended_ms
      from fresh group by user_id
      union all
      select 't:' || token_id, token_id, sum(quota)::bigint, sum(requests)::bigint, max(ended_ms)
      from fresh group by token_id
    ) s
    left join leases l on l.account = s.account and l.node = as_node
  ), eased as (
    update leases l set amount = l.amount - spent.lent from spent
    where l.account = spent.account and l.node = as_node and spent.lent > 0
  ), of_tokens as (
    update tokens t set used_quota = t.used_quota + spent.quota, remain_quota = t.remain_quota - spent.quota,
      leased = t.leased - spent.lent, accessed_time = greatest(t.accessed_time, spent.ended_ms / 1000)
    from spent where spent.account like 't:%' and t.id = spent.id
  )
  update users u set used_quota = u.used_quota + spent.quota, quota = u.quota - spent.quota,
    leased = u.leased - spent.lent, request_count = u.request_count + spent.requests
  from spent where spent.account like 'u:%' and u.id = spent.id;
end`,
  },
  {
    name: 'bank_apply(as_node text, calls jsonb, accounts text[], helds bigint[], estimates bigint[])',
    returns: 'setof jsonb',
    body: `
declare
  touched text[];
begin
  if jsonb_array_length(calls) = 0 and cardinality(accounts) = 0 then
    perform bank_look_after_lost(as_node);
    insert into nodes (node, expires) values (as_node, now() + interval '60 seconds')
      on conflict (node) do update set expires = excluded.expires;
    return query select * from bank_statement(as_node, array(select account from leases where node = as_node));
    return;
  end if;
  touched := array(
    select unnest(accounts)
    union select 'u:' || (c ->> 'user_id') from jsonb_array_elements(calls) c
    union select 't:' || (c ->> 'token_id') from jsonb_array_elements(calls) c
    union select 'u:' || user_id from lost_estimates where node = as_node
    union select 't:' || token_id from lost_estimates where node = as_node);
  perform bank_lock_accounts(touched);
  perform bank_withdraw_estimates(as_node);
  perform bank_charge(as_node, calls);
  insert into leases as l (account, node, epoch, amount, held, estimate)
    select told.account, as_node,
      case when told.account like 'u:%' then (select epoch from users where id = substr(told.account, 3)::bigint)
        else (select epoch from tokens where id = substr(told.account, 3)::bigint) end,
      0, told.held, told.estimate
    from unnest(accounts, helds, estimates) as told (account, held, estimate)
    on conflict (account, node) do update set held = excluded.held, estimate = excluded.estimate
      where l.held <> excluded.held or l.estimate <> excluded.estimate;
  delete from leases where node = as_node and account = any (touched) and amount = 0 and held = 0;
  insert into nodes (node, expires) values (as_node, now() + interval '60 seconds')
    on conflict (node) do update set expires = excluded.expires;
  return query select * from bank_statement(as_node, touched);
end`,
  },
]
