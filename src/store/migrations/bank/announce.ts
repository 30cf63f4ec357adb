import type { BankFunction } from './bank-function.ts'

/** Creates the place of the key that the database signs with, as both blocks of its HMAC. */
export const MESSAGE_KEY = `create table message_key (
  id integer primary key check (id = 1),
  inner_block bytea not null,
  outer_block bytea not null)`

/** Functions that tell all nodes that an account was changed. */
export const ANNOUNCE: readonly BankFunction[] = [
  {
    // Signs as `NodeMessages` does. Says nothing before the first node has stored the key.
    name: 'bank_announce(account text)',
    returns: 'void',
    body: `
declare
  message bytea := convert_to('account ' || account, 'UTF8');
  key message_key;
begin
  select * into key from message_key;
  if not found then return; end if;
  perform pg_notify('sluice',
    substr(encode(sha256(key.outer_block || sha256(key.inner_block || message)), 'hex'), 1, 32) || ' account ' || account);
end`,
  },
]
