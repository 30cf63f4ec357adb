import type { OwnPostgres } from '../fixtures/own-postgres.ts'

/** One change of a token's row; changes are in order. */
export interface TokenChange {
  readonly token_id: number
  /** The change of its quota, and of its recorded use. */
  readonly remain: number
  readonly moved: number
  readonly used: number
  readonly deleted: boolean
}

/** Makes PostgreSQL record every change of a token, unknown to the gateways. */
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

/** The recorded changes of a token. */
export function historyOf(postgres: OwnPostgres, tokenId: number): Promise<TokenChange[]> {
  return postgres.sql<TokenChange>(`select * from test_history where token_id = ${tokenId} order by n`)
}
