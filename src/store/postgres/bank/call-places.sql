-- Counts of calls under way, which nodes on one database share. The tables are not logged: after a crash of
-- the server they are empty, and a new generation asks the nodes to report again.

-- Heartbeat of a node; returns the generation. Removes nodes that were silent for an hour.
create or replace function call_node_seen(as_node text)
  returns text language plpgsql security definer set search_path from current as $$
declare
  silent text[];
begin
  insert into call_nodes values (as_node, clock_timestamp())
    on conflict (node) do update set seen_at = excluded.seen_at;
  silent := array(select node from call_nodes where seen_at < clock_timestamp() - interval '1 hour'
    for update skip locked);
  if cardinality(silent) > 0 then
    delete from call_places where node = any(silent);
    delete from call_nodes where node = any(silent);
  end if;
  insert into call_generation values (1, clock_timestamp()) on conflict do nothing;
  return (select born_at::text from call_generation);
end
$$;

-- Replaces the places of a node, and grants free ones; null if the node knew another generation.
create or replace function call_places_take(of_subject text, as_node text, has bigint, wants bigint, places bigint, known text)
  returns bigint language plpgsql security definer set search_path from current as $$
declare
  others bigint;
  granted bigint;
begin
  if known is distinct from (select born_at::text from call_generation) then return null; end if;
  -- The following statements see what earlier holders of the lock have written.
  perform pg_advisory_xact_lock(hashtextextended('sluice call places ' || of_subject, 0));
  select coalesce(sum(held), 0) into others from call_places join call_nodes using (node)
    where subject = of_subject and node <> as_node and seen_at > clock_timestamp() - interval '3 seconds';
  granted := greatest(0, least(wants, places - others - has));
  if has + granted = 0 then
    delete from call_places where subject = of_subject and node = as_node;
  else
    insert into call_places values (of_subject, as_node, has + granted)
      on conflict (subject, node) do update set held = excluded.held;
  end if;
  return granted;
end
$$;

-- Removes a node that stops.
create or replace function call_node_gone(as_node text)
  returns void language plpgsql security definer set search_path from current as $$
begin
  delete from call_places where node = as_node;
  delete from call_nodes where node = as_node;
end
$$;
