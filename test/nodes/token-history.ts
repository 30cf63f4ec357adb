import type { OwnPostgres } from '../equipment/own-postgres.ts'

/** One change of a token's row, in the order in which changes were made. */
export interface TokenChange {
  readonly token_id: number
  /** By how much its quota moved, and what it is said to have used. */
  readonly remain: number
  readonly moved: number
  readonly used: number
  readonly deleted: boolean
}

/** From now on PostgreSQL writes down every change of a token. The gateways know nothing of it. */
export async function keepHistory(postgres: OwnPostgres): Promise<void> {
  await postgres.sql(`
    create table test_history (
      n bigserial primary key, token_id bigint, remain bigint, moved bigint, used bigint, deleted boolean
    );
    create function test_note() returns trigger language plpgsql security definer as $$
    begin
      insert into public.test_history (token_id, remain, moved, used, deleted)
        values (new.id, new.remain_quota, new.remain_quota - old.remain_quota, new.used_quota - old.used_quota,
          new.deleted_time is not null);
      return null;
    end $$;
    create trigger test_note after update on tokens for each row execute function test_note()`)
}

/** What was written down of a token. */
export function historyOf(postgres: OwnPostgres, tokenId: number): Promise<TokenChange[]> {
  return postgres.sql<TokenChange>(`select * from test_history where token_id = ${tokenId} order by n`)
}
