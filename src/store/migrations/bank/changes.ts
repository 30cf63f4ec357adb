import { quoted } from './bank-function.ts'

/** What of a token calls are admitted by, beside its money. */
const TOKEN_COLUMNS = [
  'status',
  'deleted_time',
  'unlimited_quota',
  'expired_time',
  'model_limits_enabled',
  'model_limits',
  'allow_ips',
  'group_name',
  'vendor_routes',
]
const USER_COLUMNS = ['status', 'deleted_time', 'group_name', 'role']

/** Changes of these call the leases in. */
const RECALLING_TOKEN_COLUMNS = ['status', 'deleted_time', 'unlimited_quota']
const RECALLING_USER_COLUMNS = ['status', 'deleted_time']

/**
 * Whatever changes an account, but for the bank's own functions, is a change by hand, and every node is told
 * of it. (The bank moves what remains only together with what was used or lent.) Less quota than before, a
 * status, a deletion call the leases in: the account's epoch goes up by one, and nobody has anything of it
 * any more.
 */
export function changes(schema: string): readonly string[] {
  return [
    ...changeTrigger(schema, {
      table: 'users',
      letter: 'u',
      remain: 'quota',
      columns: USER_COLUMNS,
      recallingColumns: RECALLING_USER_COLUMNS,
    }),
    ...changeTrigger(schema, {
      table: 'tokens',
      letter: 't',
      remain: 'remain_quota',
      columns: TOKEN_COLUMNS,
      recallingColumns: RECALLING_TOKEN_COLUMNS,
    }),
  ]
}

interface WatchedTable {
  readonly table: 'users' | 'tokens'
  readonly letter: 'u' | 't'
  readonly remain: string
  readonly columns: readonly string[]
  readonly recallingColumns: readonly string[]
}

function changeTrigger(schema: string, { table, letter, remain, columns: seen, recallingColumns: grave }: WatchedTable): readonly string[] {
  const differs = (name: string): string => `new.${name} is distinct from old.${name}`
  return [
    `create function bank_heed_${table}() returns trigger language plpgsql
       set search_path = pg_catalog, ${quoted(schema)}, pg_temp as $bank$
begin
  if new.${remain} < old.${remain} or ${grave.map(differs).join(' or ')} then
    new.leased := 0;
    new.epoch := old.epoch + 1;
    delete from leases where account = '${letter}:' || new.id;
  end if;
  perform pg_notify('sluice', 'account ${letter}:' || new.id || ' ' || new.epoch);
  return new;
end
$bank$`,
    `create trigger bank_heed before update on ${table} for each row
       when (new.used_quota = old.used_quota and new.leased = old.leased
         and (${[remain, ...seen].map(differs).join(' or ')}))
       execute function bank_heed_${table}()`,
  ]
}
