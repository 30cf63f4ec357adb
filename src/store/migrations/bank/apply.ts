import type { BankFunction } from './bank-function.ts'

/**
 * Books a node's report: settled calls, each counted once even if repeated, and sums of open holds. The
 * report is also the heartbeat that renews the leases. Returns the `AccountState` of every account in it. An
 * empty report recovers leases of lost nodes, and returns the state of all accounts that the node borrows
 * from.
 */
export const APPLY: readonly BankFunction[] = [
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
    union select b from jsonb_array_elements(calls) c,
      jsonb_array_elements_text(coalesce(nullif(c ->> 'budgets', ''), '[]')::jsonb) b
    union select account from lost_budgets where node = as_node
    union select 'u:' || user_id from lost_estimates where node = as_node
    union select 't:' || token_id from lost_estimates where node = as_node);
  perform bank_lock_accounts(touched);
  perform bank_withdraw_estimates(as_node);
  perform bank_charge(as_node, calls);
  insert into leases as l (account, node, epoch, amount, held, estimate)
    select told.account, as_node,
      case when told.account like 'u:%' then (select epoch from users where id = substr(told.account, 3)::bigint)
        when told.account like 't:%' then (select epoch from tokens where id = substr(told.account, 3)::bigint)
        else (select epoch from budget_periods b where b.account = told.account) end,
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
