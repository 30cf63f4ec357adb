import type { OwnPostgres } from '../fixtures/own-postgres.ts'

/** Makes PostgreSQL record every moment at which more of an account is leased than it has. */
export async function watchLeases(postgres: OwnPostgres): Promise<void> {
  await postgres.sql(`
    create table test_lent (n bigserial primary key, account text, remain bigint, leased bigint);
    create function test_note_lent() returns trigger language plpgsql security definer as $$
    declare
      remain bigint := coalesce(to_jsonb(new) ->> 'remain_quota', to_jsonb(new) ->> 'quota');
    begin
      insert into public.test_lent (account, remain, leased)
        values (tg_table_name || ' ' || new.id, remain, new.leased);
      return null;
    end $$;
    create trigger test_note_lent after update on tokens for each row
      when (new.leased > greatest(new.remain_quota, 0)) execute function test_note_lent();
    create trigger test_note_lent after update on users for each row
      when (new.leased > greatest(new.quota, 0)) execute function test_note_lent()`)
}

/** A sentence for each account of which more was leased than it has. */
export async function excessLeases(postgres: OwnPostgres): Promise<string[]> {
  const rows = await postgres.sql<{ account: string; times: number; leased: number; remain: number }>(
    'select account, count(*) as times, max(leased) as leased, min(remain) as remain from test_lent group by account',
  )
  return rows.map(
    ({ account, times, leased, remain }) =>
      `more of ${account} was lent than there was, ${times} times: up to ${leased} of down to ${remain}`,
  )
}
