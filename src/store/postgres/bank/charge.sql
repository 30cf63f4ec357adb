-- Charges settled calls, each once. Estimates for lost nodes have no usage of other modalities, requested
-- model or budgets.

create or replace function bank_charge(as_node text, calls jsonb)
  returns void language plpgsql security definer set search_path from current as $$
begin
  with given as (
    select distinct on (c.id) c.* from jsonb_to_recordset(calls) as c (
      id text, ended_ms bigint, user_id bigint, token_id bigint, model text, upstream_model text, channel text,
      group_name text, input_tokens bigint, cache_read_tokens bigint, cache_write_5m_tokens bigint,
      cache_write_1h_tokens bigint, output_tokens bigint, reasoning_tokens bigint, web_searches bigint, quota bigint,
      price_version text, duration_ms bigint, first_byte_ms bigint, stream bigint, reason text, requests bigint,
      audio_input_tokens bigint, image_input_tokens bigint, audio_output_tokens bigint, image_output_tokens bigint,
      seconds bigint, characters bigint, images bigint, search_units bigint, kind text, requested_model text, budgets text,
      attempts text, particulars text, price_incomplete bigint, note text)
    -- Of a token that nobody knows here nothing can be charged; it must not keep back what can.
    join tokens k on k.id = c.token_id and k.user_id = c.user_id
    order by c.id
  ), logged as (
    insert into usage_log (id, ended_ms, user_id, token_id, model, upstream_model, channel, group_name, input_tokens,
      cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, web_searches,
      quota, price_version, duration_ms, first_byte_ms, stream, reason, audio_input_tokens, image_input_tokens,
      audio_output_tokens, image_output_tokens, seconds, characters, images, search_units, kind,
      requested_model, attempts, particulars, price_incomplete, note)
    select id, ended_ms, user_id, token_id, model, upstream_model, channel, group_name, input_tokens,
      cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, web_searches,
      quota, price_version, duration_ms, first_byte_ms, stream, reason, coalesce(audio_input_tokens, 0),
      coalesce(image_input_tokens, 0), coalesce(audio_output_tokens, 0), coalesce(image_output_tokens, 0),
      coalesce(seconds, 0), coalesce(characters, 0), coalesce(images, 0),
      coalesce(search_units, 0), coalesce(kind, ''),
      coalesce(requested_model, ''), attempts, particulars, coalesce(price_incomplete, 0), coalesce(note, '')
    from given order by id
    on conflict (id) do nothing
    returning id
  ), fresh as (
    select given.* from given join logged using (id)
  ), days as (
    insert into usage_days as d (day, user_id, token_id, model, channel, group_name, requests, input_tokens,
      cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, web_searches,
      quota, audio_input_tokens, image_input_tokens, audio_output_tokens, image_output_tokens, seconds, characters,
      images, search_units, failed)
    select ended_ms / 86400000, user_id, token_id, model, channel, group_name, sum(requests), sum(input_tokens),
      sum(cache_read_tokens), sum(cache_write_5m_tokens), sum(cache_write_1h_tokens), sum(output_tokens),
      sum(reasoning_tokens), sum(web_searches), sum(quota), coalesce(sum(audio_input_tokens), 0),
      coalesce(sum(image_input_tokens), 0), coalesce(sum(audio_output_tokens), 0), coalesce(sum(image_output_tokens), 0),
      coalesce(sum(seconds), 0), coalesce(sum(characters), 0), coalesce(sum(images), 0),
      coalesce(sum(search_units), 0),
      count(*) filter (where reason in ('failed', 'cut', 'crash', 'lost-node'))
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
      quota = d.quota + excluded.quota,
      audio_input_tokens = d.audio_input_tokens + excluded.audio_input_tokens,
      image_input_tokens = d.image_input_tokens + excluded.image_input_tokens,
      audio_output_tokens = d.audio_output_tokens + excluded.audio_output_tokens,
      image_output_tokens = d.image_output_tokens + excluded.image_output_tokens,
      seconds = d.seconds + excluded.seconds,
      characters = d.characters + excluded.characters,
      images = d.images + excluded.images,
      search_units = d.search_units + excluded.search_units,
      failed = d.failed + excluded.failed
  ), {{point_sums}}, spent as (
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
