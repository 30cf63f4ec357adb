-- Functions that notify all nodes that an account was changed.

-- Signs like `NodeMessages`. Sends nothing before the first node has stored the key.
create or replace function bank_announce(account text)
  returns void language plpgsql security definer set search_path from current as $$
declare
  message bytea := convert_to('account ' || account, 'UTF8');
  key message_key;
begin
  select * into key from message_key;
  if not found then return; end if;
  perform pg_notify('sluice',
    substr(encode(sha256(key.outer_block || sha256(key.inner_block || message)), 'hex'), 1, 32) || ' account ' || account);
end
$$;
