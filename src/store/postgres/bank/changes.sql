-- Triggers that notify every node of changes of accounts that the bank's functions did not make. (Those change
-- a balance only together with `used_quota` or `leased`.) A lower balance, a new status and a deletion recall
-- the leases: the epoch of the account rises by one, and all leases end, except for what is held. So does another
-- budget with its own leases.

create or replace function bank_heed_users()
  returns trigger language plpgsql security definer set search_path from current as $$
begin
  if new.quota < old.quota or {{user_recalled}} then
    new.epoch := old.epoch + 1;
    new.leased := bank_recall('u:' || new.id, new.epoch);
  end if;
  if new.budget is distinct from old.budget or new.budget_period is distinct from old.budget_period then
    perform bank_recall_budgets('u:' || new.id);
  end if;
  perform bank_announce('u:' || new.id);
  return new;
end
$$;

drop trigger if exists bank_heed on users;
create trigger bank_heed before update on users for each row
  when (new.used_quota = old.used_quota and new.leased = old.leased
    and (new.quota is distinct from old.quota or {{user_changed}}))
  execute function bank_heed_users();

create or replace function bank_heed_tokens()
  returns trigger language plpgsql security definer set search_path from current as $$
begin
  if new.remain_quota < old.remain_quota or {{token_recalled}} then
    new.epoch := old.epoch + 1;
    new.leased := bank_recall('t:' || new.id, new.epoch);
  end if;
  if new.budget is distinct from old.budget or new.budget_period is distinct from old.budget_period then
    perform bank_recall_budgets('t:' || new.id);
  end if;
  perform bank_announce('t:' || new.id);
  return new;
end
$$;

drop trigger if exists bank_heed on tokens;
create trigger bank_heed before update on tokens for each row
  when (new.used_quota = old.used_quota and new.leased = old.leased
    and (new.remain_quota is distinct from old.remain_quota or {{token_changed}}))
  execute function bank_heed_tokens();
