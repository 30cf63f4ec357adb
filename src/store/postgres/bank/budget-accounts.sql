-- Functions on the accounts of budgets, by `docs/ledger.md: Accounts of budgets`. Owners and their tokens are locked
-- before these accounts.

-- Creates accounts that are missing, and locks all, in the order of names, to avoid deadlocks.
create or replace function bank_open_budgets(names text[])
  returns void language plpgsql security definer set search_path from current as $$
begin
  if cardinality(names) = 0 then return; end if;
  insert into budget_periods (account, owner, amount, used)
    select distinct n, regexp_replace(n, '^b:[^:]*:[^:]*:', ''), 0, 0 from unnest(names) n order by n
    on conflict (account) do nothing;
  perform 1 from budget_periods where account = any (names) order by account for no key update;
end
$$;

create or replace function bank_recall_budget(of_account text)
  returns void language plpgsql security definer set search_path from current as $$
begin
  update budget_periods set epoch = epoch + 1, leased = bank_recall(of_account, epoch + 1) where account = of_account;
  perform bank_announce(of_account);
end
$$;

create or replace function bank_recall_budgets(of_owner text)
  returns void language plpgsql security definer set search_path from current as $$
declare
  one record;
begin
  for one in
    select account from budget_periods where owner = of_owner and leased > 0 order by account for no key update
  loop
    perform bank_recall_budget(one.account);
  end loop;
end
$$;

-- A lower amount ends the leases, which were lent under the higher one; 0 is unknown.
create or replace function bank_set_budget(of_account text, to_amount bigint)
  returns void language plpgsql security definer set search_path from current as $$
declare
  before bigint;
begin
  select amount into before from budget_periods where account = of_account;
  if to_amount <= 0 or to_amount = before then return; end if;
  if to_amount < before then perform bank_recall_budget(of_account); end if;
  update budget_periods set amount = to_amount where account = of_account;
end
$$;

-- Records that 80 % or 100 % of a budget are used, once per period, in the transaction that reaches it.
create or replace function budget_crossed() returns trigger language plpgsql as $$
begin
  insert into budget_crossings (account, percent, amount, used)
    select new.account, percent, new.amount, new.used from unnest(array[80, 100]) percent
    where new.used * 100 >= new.amount * percent
    on conflict (account, percent) do nothing;
  return null;
end
$$;

drop trigger if exists budget_crossed on budget_periods;
create trigger budget_crossed after insert or update of used, amount on budget_periods for each row
  when (new.amount > 0 and new.used * 5 >= new.amount * 4) execute function budget_crossed();
