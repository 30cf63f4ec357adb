import { quoted } from './bank-function.ts'

/** Columns of tokens that the admission of calls depends on, without the balance. */
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
/** Columns of users that the admission of calls depends on, without the balance. */
const USER_COLUMNS = ['status', 'deleted_time', 'group_name', 'role']

/** Columns of tokens whose changes recall the leases. */
const RECALLING_TOKEN_COLUMNS = ['status', 'deleted_time', 'unlimited_quota']
/** Columns of users whose changes recall the leases. */
const RECALLING_USER_COLUMNS = ['status', 'deleted_time']

/**
 * Returns triggers that notify every node of changes of accounts that the bank's functions did not make.
 * (Those change a balance only together with `used_quota` or `leased`.) A lower balance, a new status and a
 * deletion recall the leases: the epoch of the account rises by one, and all leases end.
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

function changeTrigger(
  schema: string,
  { table, letter, remain, columns: seen, recallingColumns: grave }: WatchedTable,
): readonly string[] {
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
