import type { BankFunction } from './bank-function.ts'

/**
 * Functions that the others share. Accounts are named `u:3`, `t:17`, or `b:month:2026-11-01:u:3` for a
 * budget in one period; callers lock their rows first.
 */
export const ACCOUNTS: readonly BankFunction[] = [
  {
    // Locks users first, and each kind in the order of ids, to avoid deadlocks.
    name: 'bank_lock(user_ids bigint[], token_ids bigint[])',
    returns: 'void',
    body: `
begin
  perform 1 from users where id = any (user_ids) order by id for no key update;
  perform 1 from tokens where id = any (token_ids) order by id for no key update;
end`,
  },
  {
    name: 'bank_lock_accounts(accounts text[])',
    returns: 'void',
    body: `
begin
  perform bank_lock(
    array(select substr(a, 3)::bigint from unnest(accounts) a where a like 'u:%'),
    array(select substr(a, 3)::bigint from unnest(accounts) a where a like 't:%'));
  perform bank_open_budgets(array(select a from unnest(accounts) a where a like 'b:%'));
end`,
  },
  {
    name: 'bank_move_leased(of_account text, by_amount bigint)',
    returns: 'void',
    body: `
begin
  if by_amount = 0 then return; end if;
  if of_account like 'u:%' then
    update users set leased = leased + by_amount where id = substr(of_account, 3)::bigint;
  elsif of_account like 't:%' then
    update tokens set leased = leased + by_amount where id = substr(of_account, 3)::bigint;
  else
    update budget_periods set leased = leased + by_amount where account = of_account;
  end if;
end`,
  },
  {
    name: 'bank_give_back(of_account text, of_node text, back bigint)',
    returns: 'void',
    body: `
begin
  if back <= 0 then return; end if;
  update leases set amount = amount - back where account = of_account and node = of_node;
  perform bank_move_leased(of_account, -back);
end`,
  },
  {
    // Returns the part of expired nodes' leases that no hold needs. Skips nodes that are reporting right now.
    name: 'bank_reclaim(accounts text[])',
    returns: 'void',
    body: `
declare
  lent record;
begin
  for lent in
    select l.account, l.node, l.amount - l.held as back
    from leases l join nodes n on n.node = l.node
    where l.account = any (accounts) and n.expires < now() and l.amount > l.held
    order by l.account, l.node
    for no key update of n skip locked
  loop
    perform bank_give_back(lent.account, lent.node, lent.back);
  end loop;
end`,
  },
  {
    // Returns the `AccountState` of each account for a node.
    name: 'bank_statement(as_node text, accounts text[])',
    returns: 'setof jsonb',
    body: `
begin
  return query
    select jsonb_build_object('account', a.account, 'epoch', a.epoch, 'remain', a.remain, 'free', a.remain - a.leased,
      'amount', coalesce(l.amount, 0))
    from (
      select 'u:' || id as account, epoch, quota as remain, leased from users
        where id = any (array(select substr(x, 3)::bigint from unnest(accounts) x where x like 'u:%'))
      union all
      select 't:' || id, epoch, remain_quota, leased from tokens
        where id = any (array(select substr(x, 3)::bigint from unnest(accounts) x where x like 't:%'))
      union all
      select account, epoch, amount - used, leased from budget_periods
        where account = any (array(select x from unnest(accounts) x where x like 'b:%'))
    ) a
    left join leases l on l.account = a.account and l.node = as_node;
end`,
  },
]
